import * as lockweave from "lockweave/runtime";
import { setImmediate as turn } from "node:timers/promises";
/** Accounts with a pause between each read and write, as with any database. */
export class Bank {
    #balances = new Map();
    constructor(balances) {
        for (const [account, balance] of Object.entries(balances))
            this.#balances.set(account, balance);
    }
    get total() {
        return [...this.#balances.values()].reduce((sum, balance) => sum + balance, 0);
    }
    /** @redisLock businessFlag=account keyName=from,to each=true waitTime=20s */
    async transfer(from, to, amount) {
        const lock = lockweave.open({ site: "Bank.transfer", businessFlag: "account", each: true, waitTime: "20s" }, from, to);
        while (!(await lockweave.acquire(lock)))
            void (await lockweave.retryCheck(lock));
        try {
            lockweave.assertHeld(lock);
            const [mine = 0, theirs = 0] = [this.#balances.get(from), this.#balances.get(to)];
            await turn();
            this.#balances.set(from, mine - amount);
            this.#balances.set(to, theirs + amount);
        }
        catch (error) {
            throw lockweave.fail(lock, error);
        }
        finally {
            await lockweave.release(lock);
        }
    }
    /** Does the same transfer without a lock, for comparison. */
    async transferCarelessly(from, to, amount) {
        const [mine = 0, theirs = 0] = [this.#balances.get(from), this.#balances.get(to)];
        await turn();
        this.#balances.set(from, mine - amount);
        this.#balances.set(to, theirs + amount);
    }
}
