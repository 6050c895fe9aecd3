import { setTimeout as sleep } from "node:timers/promises";
import { Injectable } from "@nestjs/common";

@Injectable()
export class OrdersService {
  readonly #paid = new Set<string>();

  /** @redisLock businessFlag=pay keyName=orderNo waitTime=5s */
  async pay(orderNo: string): Promise<string> {
    if (this.#paid.has(orderNo)) return `${orderNo} was paid before`;
    await sleep(100); // The bank. Without the lock, who comes meanwhile pays once more.
    this.#paid.add(orderNo);
    return `${orderNo} is paid`;
  }
}
