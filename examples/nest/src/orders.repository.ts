import { setTimeout as sleep } from "node:timers/promises";
import { Injectable } from "@nestjs/common";

@Injectable()
export class OrdersRepository {
  readonly #paid = new Set<string>();

  isPaid(orderNo: string): boolean {
    return this.#paid.has(orderNo);
  }

  /** @needsLock businessFlag=pay keyName=orderNo */
  async savePayment(orderNo: string): Promise<void> {
    await sleep(100); // The bank. Without the lock, a second call would now pay again.
    this.#paid.add(orderNo);
  }
}
