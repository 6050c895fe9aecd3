import * as lockweave from "lockweave/runtime";
/** Prices that callers read often, and sometimes replace all at once. */
export class PriceList {
    #prices = new Map();
    #log;
    /** The number of readers, now and at most. */
    readers = { now: 0, most: 0 };
    constructor(log) {
        this.#log = log;
    }
    /** @redisLock businessFlag=prices mode=read */
    async total(articles) {
        const lock = lockweave.open({ site: "PriceList.total", businessFlag: "prices", mode: "read" });
        while (!(await lockweave.acquire(lock)))
            void (await lockweave.retryCheck(lock));
        try {
            return await lockweave.runReentrant(lock, async () => {
                this.readers.now += 1;
                this.readers.most = Math.max(this.readers.most, this.readers.now);
                let total = 0;
                for (const article of articles)
                    total += await this.#price(article);
                this.readers.now -= 1;
                return total;
            });
        }
        catch (error) {
            throw lockweave.fail(lock, error);
        }
        finally {
            await lockweave.release(lock);
        }
    }
    /** @redisLock businessFlag=prices mode=write */
    async replace(prices) {
        const lock = lockweave.open({ site: "PriceList.replace", businessFlag: "prices", mode: "write" });
        while (!(await lockweave.acquire(lock)))
            void (await lockweave.retryCheck(lock));
        try {
            lockweave.assertHeld(lock);
            this.#log(`${this.readers.now} readers while the prices are replaced`);
            this.#prices.clear();
            await pause(20); // A reader would now see no prices, or only some of them.
            for (const [article, price] of Object.entries(prices))
                this.#prices.set(article, price);
        }
        catch (error) {
            throw lockweave.fail(lock, error);
        }
        finally {
            await lockweave.release(lock);
        }
    }
    async #price(article) {
        await pause(20);
        return this.#prices.get(article) ?? NaN;
    }
}
function pause(ms) {
    return new Promise((resolve) => {
        setTimeout(resolve, ms);
    });
}
