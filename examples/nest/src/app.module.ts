import { Module } from "@nestjs/common";
import { LockModule } from "lockweave/nest";
import { OrdersController } from "./orders.controller.js";
import { OrdersRepository } from "./orders.repository.js";
import { OrdersService } from "./orders.service.js";

@Module({
  imports: [
    LockModule.forRoot({ redis: process.env["REDIS_URL"] ?? "redis://localhost:6379", patience: "20s" }),
  ],
  controllers: [OrdersController],
  providers: [OrdersService, OrdersRepository],
})
export class AppModule {}
