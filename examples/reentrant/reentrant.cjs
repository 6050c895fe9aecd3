"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
const lockweave = require("lockweave/runtime");
const promises_1 = require("node:timers/promises");
const lockweave_1 = require("lockweave");
class Account {
    #log;
    #balance = 100;
    constructor(log) {
        this.#log = log;
    }
    /** @redisLock businessFlag=account keyName=id reentrant=true */
    async transfer(id, amounts) {
        const lock = lockweave.open({ site: "Account.transfer", businessFlag: "account", reentrant: true }, id);
        while (!(await lockweave.acquire(lock)))
            void (await lockweave.retryCheck(lock));
        try {
            return await lockweave.runReentrant(lock, async () => {
                this.#log(`transfer of ${amounts.join(" + ")} begins`);
                for (const amount of amounts)
                    await this.withdraw(id, amount); // Enters the lock of the same key again.
                this.#log(`transfer of ${amounts.join(" + ")} ends`);
                return this.#balance;
            });
        }
        catch (error) {
            throw lockweave.fail(lock, error);
        }
        finally {
            await lockweave.release(lock);
        }
    }
    /** @redisLock businessFlag=account keyName=id reentrant=true */
    async withdraw(id, amount) {
        const lock = lockweave.open({ site: "Account.withdraw", businessFlag: "account", reentrant: true }, id);
        while (!(await lockweave.acquire(lock)))
            void (await lockweave.retryCheck(lock));
        try {
            return await lockweave.runReentrant(lock, async () => {
                if (amount > 10) {
                    await this.withdraw(id, 10); // The recursive call enters again, too.
                    return this.withdraw(id, amount - 10);
                }
                await (0, promises_1.setTimeout)(1);
                this.#balance -= amount;
                this.#log(`  ${amount} withdrawn, ${this.#balance} left`);
            });
        }
        catch (error) {
            throw lockweave.fail(lock, error);
        }
        finally {
            await lockweave.release(lock);
        }
    }
}
async function main() {
    const redis = process.env["REDIS_URL"];
    (0, lockweave_1.configure)(redis === undefined ? { store: (0, lockweave_1.memoryStore)() } : { redis }, "woven", "lockweave/examples/reentrant/reentrant.cts");
    const account = new Account(console.log);
    // Neither transfer calls the other one, so the second one waits for the first one.
    await Promise.all([account.transfer(1, [5, 25]), account.transfer(1, [7])]);
    await (0, lockweave_1.shutdown)();
}
void main();
