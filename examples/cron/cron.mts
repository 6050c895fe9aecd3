import { configure, memoryStore, shutdown } from "lockweave";

const redis = process.env["REDIS_URL"];
configure(redis === undefined ? { store: memoryStore() } : { redis });

class Reports {
  /**
   * Every machine starts this job by its own clock, and one machine writes the report. The key stays locked for a minute,
   * even if the job is faster. By then, the job has started on every machine.
   *
   * @redisLock businessFlag=nightlyReport keyName=day
   *   retryTimes=0 onFailure=skip lockTime=1m lockAtLeast=1m
   */
  async nightly(day: string): Promise<string | undefined> {
    return `the report for ${day}`;
  }
}

const made = await new Reports().nightly("2026-01-31");
console.log(made === undefined ? "another machine wrote the report" : `wrote ${made}`);
await shutdown();
