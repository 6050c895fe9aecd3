import { Injectable } from "@nestjs/common";
import { OrdersRepository } from "./orders.repository.js";

@Injectable()
export class OrdersService {
  constructor(private readonly orders: OrdersRepository) {}

  /** @redisLock businessFlag=pay keyName=orderNo waitTime=5s */
  async pay(orderNo: string): Promise<string> {
    if (this.orders.isPaid(orderNo)) return `${orderNo} was paid before`;
    await this.orders.savePayment(orderNo);
    return `${orderNo} is paid`;
  }
}
