import { configure, memoryStore, shutdown } from "lockweave";

const redis = process.env["REDIS_URL"];
configure(redis === undefined ? { store: memoryStore() } : { redis });

class Reports {
  /**
   * Every machine starts this by its own clock, and one of them makes the report. The key stays for a minute, also when
   * the report is made in a moment: by then the clocks of all of them have struck.
   *
   * @redisLock businessFlag=nightlyReport keyName=day
   *   retryTimes=0 onFailure=skip lockTime=1m lockAtLeast=1m
   */
  async nightly(day: string): Promise<string | undefined> {
    return `the report of ${day}`;
  }
}

const made = await new Reports().nightly("2026-01-31");
console.log(made === undefined ? "another machine has made it" : `made ${made}`);
await shutdown();
