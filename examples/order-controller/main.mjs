import { configure, shutdown } from "lockweave";
import { OrderController } from "./order-controller.mjs";
import { placeOfLocks } from "./place.mjs";
import { serve } from "./server.mjs";
const start = performance.now();
const log = (line) => {
    console.log(`${((performance.now() - start) / 1000).toFixed(2).padStart(6)} s  ${line}`);
};
configure({ ...placeOfLocks().options, logger: { debug: log, warn: log } }, "woven", "lockweave/examples/order-controller/main.mts");
const { server, url } = await serve(new OrderController(log));
const order = JSON.stringify({ orderNo: "Test001", user: { id: 7 } });
async function client(name, path, init) {
    const response = await fetch(url + path, init);
    log(`client ${name} gets ${response.status}: ${await response.text()}`);
    if (!response.ok)
        process.exit(1); // The server of the locks does not work.
}
log("--- Two clients pay the same order: one after the other.");
await Promise.all([client("A", "/testValue?orderNo=Test001"), client("B", "/testValue?orderNo=Test001")]);
log("--- The key is a field of an object, or of JSON text.");
await client("A", "/testBean", { method: "POST", body: order });
await client("A", "/testJson", { method: "POST", body: order });
log("--- The work takes 6 s. The second client waits, and the release wakes it.");
await Promise.all([client("A", "/testRetry?orderNo=Test001"), client("B", "/testRetry?orderNo=Test001")]);
server.close();
await shutdown();
