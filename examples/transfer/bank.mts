import { setImmediate as turn } from "node:timers/promises";

/** Accounts with a pause between each read and write, as with any database. */
export class Bank {
  readonly #balances = new Map<string, number>();

  constructor(balances: Readonly<Record<string, number>>) {
    for (const [account, balance] of Object.entries(balances)) this.#balances.set(account, balance);
  }

  get total(): number {
    return [...this.#balances.values()].reduce((sum, balance) => sum + balance, 0);
  }

  /** @redisLock businessFlag=account keyName=from,to each=true waitTime=20s */
  async transfer(from: string, to: string, amount: number): Promise<void> {
    const [mine = 0, theirs = 0] = [this.#balances.get(from), this.#balances.get(to)];
    await turn();
    this.#balances.set(from, mine - amount);
    this.#balances.set(to, theirs + amount);
  }

  /** Does the same transfer without a lock, for comparison. */
  async transferCarelessly(from: string, to: string, amount: number): Promise<void> {
    const [mine = 0, theirs = 0] = [this.#balances.get(from), this.#balances.get(to)];
    await turn();
    this.#balances.set(from, mine - amount);
    this.#balances.set(to, theirs + amount);
  }
}
