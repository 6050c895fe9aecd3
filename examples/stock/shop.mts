import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";

/** Sells from a record that all processes share. It reads the record, waits for the payment, and writes the record. */
export class CarelessShop {
  constructor(readonly redis: Redis) {}

  async sell(sku: string): Promise<boolean> {
    const left = Number(await this.redis.get(`stock:${sku}`));
    if (left <= 0) return false;
    await sleep(1); // The customer pays.
    await this.redis.set(`stock:${sku}`, left - 1);
    return true;
  }
}

export class Shop extends CarelessShop {
  /** @redisLock businessFlag=stock keyName=sku waitTime=20s */
  override async sell(sku: string): Promise<boolean> {
    return super.sell(sku);
  }
}
