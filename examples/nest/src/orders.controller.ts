import { Controller, Param, Post } from "@nestjs/common";
import { OrdersService } from "./orders.service.js";

@Controller("orders")
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Post(":orderNo/payment")
  async pay(@Param("orderNo") orderNo: string): Promise<string> {
    return await this.orders.pay(orderNo);
  }
}
