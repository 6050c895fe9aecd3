import { NestFactory } from "@nestjs/core";
import { configure } from "lockweave";
import { AppModule } from "./app.module.js";

configure({ redis: process.env["REDIS_URL"] ?? "redis://localhost:6379" });

const app = await NestFactory.create(AppModule, { logger: ["error"] });
app.enableShutdownHooks(); // For LocksShutdown.
await app.listen(process.env["PORT"] ?? 3000);
console.log(await app.getUrl());
