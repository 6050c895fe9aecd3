import { configure, currentLock, memoryStore, shutdown } from "lockweave";

const redis = process.env["REDIS_URL"];
configure(redis === undefined ? { store: memoryStore() } : { redis });

class Ledger {
  /** @redisLock businessFlag=ledger keyName=account fencing=true */
  async book(account: string, amounts: AsyncIterable<number>): Promise<number> {
    let sum = 0;
    for await (const amount of amounts) {
      currentLock().assertHeld(); // Throws if the lock is lost.
      sum += amount;
    }
    return this.#write(account, sum, currentLock().fencingToken);
  }

  /** Sends the token with each write, so that the receiver can reject a late write. */
  async #write(account: string, sum: number, token: number | undefined): Promise<number> {
    console.log(`${account}: ${sum}, fencing token drawn: ${token !== undefined}`);
    return sum;
  }
}

async function* bookings(): AsyncGenerator<number> {
  yield 3;
  yield 4;
}

await new Ledger().book("acme", bookings());
await shutdown();
