// One of many processes. It holds ten locks of its own, and acquires one shared lock again and again.
const { join } = require("node:path");
const { setTimeout: sleep } = require("node:timers/promises");
const { acquire, configure, lockKey, obtain, open, release, retryCheck } = require(
  join(__dirname, "../../dist/runtime/index.js"),
);

const SITES = ["OrderService.pay", "StockService.reserve", "InvoiceJob.run"];

// An interrupted run of the tests leaves no process behind.
process.on("disconnect", () => process.exit());

async function work(number) {
  configure({ redis: process.env.REDIS_URL, woven: false, announce: true });
  for (let nth = 0; nth < 10; nth += 1) await obtain(lockKey("order", number, nth));
  process.send("ready");
  for (;;) {
    const lock = open({ site: SITES[number % SITES.length], businessFlag: "shared", waitTime: "10m" });
    while (!(await acquire(lock))) await retryCheck(lock);
    await sleep(1_000);
    await release(lock);
  }
}

void work(Number(process.argv[2]));
