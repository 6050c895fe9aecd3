import { currentLock } from "lockweave";

/** The store of the balances. It is in another process, which does not know about locks. */
export interface Ledger {
  read(name: string): Promise<number>;
  /** Rejects if a later holder of the lock has already written. */
  write(name: string, balance: number, token?: number): Promise<void>;
}

/** Makes deposits. Each reads the balance, does slow work, and writes the new balance. */
export class Account {
  constructor(
    readonly ledger: Ledger,
    readonly work: (balance: number) => Promise<void>,
  ) {}

  /** @redisLock businessFlag=trusting keyName=name lockTime=1s */
  async depositTrusting(name: string, amount: number): Promise<void> {
    const balance = await this.ledger.read(name);
    await this.work(balance);
    await this.ledger.write(name, balance + amount);
  }

  /** @redisLock businessFlag=fenced keyName=name fencing=true lockTime=1s */
  async depositFenced(name: string, amount: number): Promise<void> {
    const balance = await this.ledger.read(name);
    await this.work(balance);
    await this.ledger.write(name, balance + amount, currentLock().fencingToken);
  }
}
