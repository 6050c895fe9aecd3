import { NestFactory } from "@nestjs/core";
import { AppModule } from "./app.module.js";

const app = await NestFactory.create(AppModule, { logger: ["error"] });
app.enableShutdownHooks(); // At a signal, NestJS then waits for the locked bodies.
await app.listen(process.env["PORT"] ?? 3000);
console.log(await app.getUrl());
