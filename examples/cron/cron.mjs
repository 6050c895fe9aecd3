import * as lockweave from "lockweave/runtime";
import { configure, memoryStore, shutdown } from "lockweave";
const redis = process.env["REDIS_URL"];
configure(redis === undefined ? { store: memoryStore() } : { redis }, "woven", "lockweave/examples/cron/cron.mts");
class Reports {
    /**
     * Every machine starts this by its own clock, and one of them makes the report. The key stays for a minute, also when
     * the report is made in a moment: by then the clocks of all of them have struck.
     *
     * @redisLock businessFlag=nightlyReport keyName=day
     *   retryTimes=0 onFailure=skip lockTime=1m lockAtLeast=1m
     */
    async nightly(day) {
        const lock = lockweave.open({ site: "Reports.nightly", businessFlag: "nightlyReport", retryTimes: 0, onFailure: "skip", lockTime: "1m", lockAtLeast: "1m" }, day);
        while (!(await lockweave.acquire(lock)))
            if (!(await lockweave.retryCheck(lock)))
                return undefined;
        try {
            lockweave.assertHeld(lock);
            return `the report of ${day}`;
        }
        catch (error) {
            throw lockweave.fail(lock, error);
        }
        finally {
            await lockweave.release(lock);
        }
    }
}
const made = await new Reports().nightly("2026-01-31");
console.log(made === undefined ? "another machine has made it" : `made ${made}`);
await shutdown();
