import * as lockweave from "lockweave/runtime";
import { configure, memoryStore, shutdown } from "lockweave";
configure({ store: memoryStore() }, "woven", "lockweave/examples/buy/buy.mts");
let left = 1;
/** @redisLock businessFlag=buy keyName=article */
async function buy(article) {
    const lock = lockweave.open({ site: "buy", businessFlag: "buy" }, article);
    while (!(await lockweave.acquire(lock)))
        void (await lockweave.retryCheck(lock));
    try {
        lockweave.assertHeld(lock);
        if (left === 0)
            return `${article} is sold out`;
        await new Promise((resolve) => setTimeout(resolve, 100)); // The customer pays.
        left -= 1;
        return `sold ${article}`;
    }
    catch (error) {
        throw lockweave.fail(lock, error);
    }
    finally {
        await lockweave.release(lock);
    }
}
console.log(await Promise.all([buy("gold"), buy("gold")]));
await shutdown();
