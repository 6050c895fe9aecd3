import { setTimeout as sleep } from "node:timers/promises";
import { configure, memoryStore, shutdown } from "lockweave";

class Account {
  readonly #log: (line: string) => void;
  #balance = 100;

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  /** @redisLock businessFlag=account keyName=id reentrant=true */
  async transfer(id: number, amounts: number[]): Promise<number> {
    this.#log(`transfer of ${amounts.join(" + ")} begins`);
    for (const amount of amounts) await this.withdraw(id, amount); // Enters the lock of the same key again.
    this.#log(`transfer of ${amounts.join(" + ")} ends`);
    return this.#balance;
  }

  /** @redisLock businessFlag=account keyName=id reentrant=true */
  async withdraw(id: number, amount: number): Promise<void> {
    if (amount > 10) {
      await this.withdraw(id, 10); // The recursive call enters again, too.
      return this.withdraw(id, amount - 10);
    }
    await sleep(1);
    this.#balance -= amount;
    this.#log(`  ${amount} withdrawn, ${this.#balance} left`);
  }
}

async function main(): Promise<void> {
  const redis = process.env["REDIS_URL"];
  configure(redis === undefined ? { store: memoryStore() } : { redis });
  const account = new Account(console.log);
  // Neither transfer calls the other one, so the second one waits for the first one.
  await Promise.all([account.transfer(1, [5, 25]), account.transfer(1, [7])]);
  await shutdown();
}

void main();
