import * as lockweave from "lockweave/runtime";
import { setTimeout as sleep } from "node:timers/promises";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor, } from "@opentelemetry/sdk-trace-base";
import { configure, memoryStore, shutdown } from "lockweave";
import { traceLocks } from "./spans.mjs";
const redis = process.env["REDIS_URL"];
configure(redis === undefined ? { store: memoryStore() } : { redis }, "woven", "lockweave/examples/telemetry/main.mts");
const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
traceLocks(provider.getTracer("orders"));
class OrderService {
    /** @redisLock businessFlag=payOrder keyName=orderNo lockTime=3s retryTimes=1 waitTime=1s */
    async pay(orderNo, ms) {
        const lock = lockweave.open({ site: "OrderService.pay", businessFlag: "payOrder", lockTime: "3s", retryTimes: 1, waitTime: "1s" }, orderNo);
        while (!(await lockweave.acquire(lock)))
            void (await lockweave.retryCheck(lock));
        try {
            lockweave.assertHeld(lock);
            await sleep(ms);
            return `${orderNo} is paid`;
        }
        catch (error) {
            throw lockweave.fail(lock, error);
        }
        finally {
            await lockweave.release(lock);
        }
    }
}
const orders = new OrderService();
const payments = await Promise.allSettled([
    orders.pay("Test001", 1_300),
    orders.pay("Test001", 10),
    orders.pay("Test002", 10),
]);
await orders.pay("Test001", 10);
await shutdown();
for (const payment of payments) {
    console.log(payment.status === "fulfilled" ? payment.value : String(payment.reason));
}
for (const { name, events, attributes, status } of exporter.getFinishedSpans()) {
    const path = new Set(events.map((event) => event.name)); // One lock was renewed several times.
    console.log(`${name}: ${[...path].join(", ")}; ${String(attributes["lock.outcome"] ?? status.message)}`);
}
