var __addDisposableResource = (this && this.__addDisposableResource) || function (env, value, async) {
    if (value !== null && value !== void 0) {
        if (typeof value !== "object" && typeof value !== "function") throw new TypeError("Object expected.");
        var dispose, inner;
        if (async) {
            if (!Symbol.asyncDispose) throw new TypeError("Symbol.asyncDispose is not defined.");
            dispose = value[Symbol.asyncDispose];
        }
        if (dispose === void 0) {
            if (!Symbol.dispose) throw new TypeError("Symbol.dispose is not defined.");
            dispose = value[Symbol.dispose];
            if (async) inner = dispose;
        }
        if (typeof dispose !== "function") throw new TypeError("Object not disposable.");
        if (inner) dispose = function() { try { inner.call(this); } catch (e) { return Promise.reject(e); } };
        env.stack.push({ value: value, dispose: dispose, async: async });
    }
    else if (async) {
        env.stack.push({ async: true });
    }
    return value;
};
var __disposeResources = (this && this.__disposeResources) || (function (SuppressedError) {
    return function (env) {
        function fail(e) {
            env.error = env.hasError ? new SuppressedError(e, env.error, "An error was suppressed during disposal.") : e;
            env.hasError = true;
        }
        var r, s = 0;
        function next() {
            while (r = env.stack.pop()) {
                try {
                    if (!r.async && s === 1) return s = 0, env.stack.push(r), Promise.resolve().then(next);
                    if (r.dispose) {
                        var result = r.dispose.call(r.value);
                        if (r.async) return s |= 2, Promise.resolve(result).then(next, function(e) { fail(e); return next(); });
                    }
                    else s |= 1;
                }
                catch (e) {
                    fail(e);
                }
            }
            if (s === 1) return env.hasError ? Promise.reject(env.error) : Promise.resolve();
            if (env.hasError) throw env.error;
        }
        return next();
    };
})(typeof SuppressedError === "function" ? SuppressedError : function (error, suppressed, message) {
    var e = new Error(message);
    return e.name = "SuppressedError", e.error = error, e.suppressed = suppressed, e;
});
import { setTimeout as sleep } from "node:timers/promises";
import { configure, lockKey, LockWaitTimeoutError, memoryStore, obtain, shutdown, withLock } from "lockweave";
const redis = process.env["REDIS_URL"];
configure(redis === undefined ? { store: memoryStore() } : { redis }, "woven", "lockweave/examples/by-hand/by-hand.mts");
// A tag with `businessFlag=payOrder keyName=orderNo` makes the same key, so both exclude each other.
const key = lockKey("payOrder", "Test001");
// The shortest form holds the lock until the function ends.
const paid = await withLock(key, () => "paid");
console.log(`withLock: ${paid}`);
// The options are the attributes of a tag. The body gets the lock.
const receipt = await withLock(key, { lockTime: "20s", fencing: true }, async (lock) => {
    await sleep(10, undefined, { signal: lock.signal }); // Stops if the lock is lost.
    lock.assertHeld();
    console.log(`withLock: holds ${lock.key}, fencing token drawn: ${typeof lock.fencingToken === "number"}`);
    return "receipt";
});
console.log(`withLock: returned ${receipt}`);
// The lock is held until the end of the block.
{
    const env_1 = { stack: [], error: void 0, hasError: false };
    try {
        const lock = __addDisposableResource(env_1, await obtain(key), true);
        console.log(`await using: holds ${lock.key}`);
        const skipped = await withLock(key, { retryTimes: 0, onFailure: "skip" }, () => "never");
        console.log(`a second caller that skips its body: ${skipped}`);
        try {
            await obtain(key, { retryTimes: 2, waitTime: "50ms" });
        }
        catch (error) {
            console.log(`a second caller that waits: ${error instanceof LockWaitTimeoutError ? error.code : String(error)}`);
        }
    }
    catch (e_1) {
        env_1.error = e_1;
        env_1.hasError = true;
    }
    finally {
        const result_1 = __disposeResources(env_1);
        if (result_1)
            await result_1;
    }
}
const free = await withLock(key, { retryTimes: 0, onFailure: "skip" }, () => "is free again");
console.log(`after the block: ${key} ${free}`);
await shutdown();
