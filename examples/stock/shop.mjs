import * as lockweave from "lockweave/runtime";
import { setTimeout as sleep } from "node:timers/promises";
/** Sells from a record that all processes share. It reads the record, waits for the payment, and writes the record. */
export class CarelessShop {
    redis;
    constructor(redis) {
        this.redis = redis;
    }
    async sell(sku) {
        const left = Number(await this.redis.get(`stock:${sku}`));
        if (left <= 0)
            return false;
        await sleep(1); // The customer pays.
        await this.redis.set(`stock:${sku}`, left - 1);
        return true;
    }
}
export class Shop extends CarelessShop {
    /** @redisLock businessFlag=stock keyName=sku waitTime=20s */
    async sell(sku) {
        const lock = lockweave.open({ site: "Shop.sell", businessFlag: "stock", waitTime: "20s" }, sku);
        while (!(await lockweave.acquire(lock)))
            void (await lockweave.retryCheck(lock));
        try {
            lockweave.assertHeld(lock);
            return await super.sell(sku);
        }
        catch (error) {
            throw lockweave.fail(lock, error);
        }
        finally {
            await lockweave.release(lock);
        }
    }
}
