import { currentLock } from "lockweave";

/** Where the balances are kept: in another process, which knows nothing of locks. */
export interface Ledger {
  read(name: string): Promise<number>;
  /** Rejects when a later holder of the lock has written already. */
  write(name: string, balance: number, token?: number): Promise<void>;
}

/** A deposit reads the balance, does something that takes its time, and writes the new balance. */
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
