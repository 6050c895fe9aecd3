import * as lockweave from "lockweave/runtime";
import { configure, currentLock, memoryStore, shutdown } from "lockweave";
const redis = process.env["REDIS_URL"];
configure(redis === undefined ? { store: memoryStore() } : { redis }, "woven", "lockweave/examples/current-lock/current-lock.mts");
class Ledger {
    /** @redisLock businessFlag=ledger keyName=account fencing=true */
    async book(account, amounts) {
        const lock = lockweave.open({ site: "Ledger.book", businessFlag: "ledger", fencing: true }, account);
        while (!(await lockweave.acquire(lock)))
            void (await lockweave.retryCheck(lock));
        try {
            lockweave.assertHeld(lock);
            let sum = 0;
            for await (const amount of amounts) {
                currentLock(lock).assertHeld(); // Throws if the lock is lost.
                sum += amount;
            }
            return await this.#write(account, sum, currentLock(lock).fencingToken);
        }
        catch (error) {
            throw lockweave.fail(lock, error);
        }
        finally {
            await lockweave.release(lock);
        }
    }
    /** Sends the token with each write, so that the receiver can reject a late write. */
    async #write(account, sum, token) {
        console.log(`${account}: ${sum}, fencing token drawn: ${token !== undefined}`);
        return sum;
    }
}
async function* bookings() {
    yield 3;
    yield 4;
}
await new Ledger().book("acme", bookings());
await shutdown();
