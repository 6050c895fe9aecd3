import { Module } from "@nestjs/common";
import { LocksShutdown } from "./locks-shutdown.js";
import { OrdersController } from "./orders.controller.js";
import { OrdersService } from "./orders.service.js";

@Module({ controllers: [OrdersController], providers: [OrdersService, LocksShutdown] })
export class AppModule {}
