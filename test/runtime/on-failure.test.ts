import { AsyncLocalStorage } from "node:async_hooks";
import test, { type ExecutionContext } from "ava";
import {
  configure,
  LockOptionError,
  LockUnreachableError,
  LockWaitTimeoutError,
  obtain,
  shutdown,
  tryObtain,
  withLock,
  type Configuration,
  type FailureHandler,
  type LockEvent,
  type WithLockOptions,
} from "../../runtime/index";
import { memoryStore } from "../../runtime/stores/memory";
import * as lockweave from "../../runtime/woven/entry";
import { deferred } from "../support/deferred";
import { freePort, startRedis, type RedisServer } from "../support/redis-server";

// The handler of `configure({ onFailure })`, for calls whose lock is not free in time.

class BusyError extends Error {}

interface Handled {
  readonly error: LockWaitTimeoutError;
  readonly lock: LockEvent;
}

let server: RedisServer;
let handled: Handled[] = [];
/** What the handler of the running test does. */
let handle: FailureHandler = () => {};
const requests = new AsyncLocalStorage<string>();

test.before(async () => {
  server = await startRedis();
  const onFailure: FailureHandler = (error, lock) => {
    handled.push({ error, lock });
    return handle(error, lock);
  };
  const gone = `redis://localhost:${await freePort()}`;
  const stores = { redis: server.url, gone };
  configure({ store: memoryStore(), stores, onFailure, woven: false, logger: { warn() {} } });
});
test.beforeEach(() => {
  handled = [];
  handle = () => {};
});
test.after.always(async () => {
  await shutdown();
  await server.stop();
});

const ONCE = { wait: 0 } as const;

/** Calls a tagged function with the steps that the weave writes. */
async function tagged(
  t: ExecutionContext,
  key: string,
  options: object = {},
  Failure?: lockweave.FailureClass,
): Promise<void> {
  const lock = lockweave.open({ site: "pay", key, ...ONCE, ...options });
  while (!(await lockweave.acquire(lock))) if (!(await lockweave.retryCheck(lock, Failure))) return;
  t.fail();
}

for (const store of ["default", "redis"]) {
  test.serial(`the onFailure handler gets the error and the lock (${store})`, async (t) => {
    await using _ = await obtain("busy-1", { store });
    const error = await t.throwsAsync(
      withLock("busy-1", { ...ONCE, store }, () => t.fail()),
      { instanceOf: LockWaitTimeoutError },
    );
    t.is(handled.length, 1);
    t.is(handled[0]?.error, error);
    t.like(handled[0]?.lock, { key: "busy-1", store, site: undefined });
    await t.throwsAsync(tagged(t, "busy-1", { store }), { instanceOf: LockWaitTimeoutError });
    t.like(handled[1]?.lock, { key: "busy-1", store, site: "pay" });
  });

  test.serial(`the call throws the error of the handler, for every kind of lock (${store})`, async (t) => {
    await using _ = await obtain("busy-2", { store });
    const kinds: readonly WithLockOptions[] = [
      {},
      { mode: "read" },
      { permits: 2 },
      { reentrant: true },
      { wait: "1ms" },
    ];
    handle = ({ key }) => {
      throw new BusyError(key);
    };
    for (const kind of kinds) {
      const options = { ...ONCE, store, ...kind };
      await t.throwsAsync(
        withLock("busy-2", options, () => t.fail()),
        { instanceOf: BusyError, message: "busy-2" },
      );
    }
    await t.throwsAsync(obtain("busy-2", { ...ONCE, store }), { instanceOf: BusyError });
    t.is(handled.length, kinds.length + 1);
  });

  test.serial(`the handler runs after the release of the other keys of a call (${store})`, async (t) => {
    await using _ = await obtain("busy-3b", { store });
    handle = async () => {
      await withLock("busy-3a", { ...ONCE, store }, () => {});
    };
    const error = await t.throwsAsync(
      withLock(["busy-3a", "busy-3b"], { ...ONCE, store }, () => t.fail()),
      { instanceOf: LockWaitTimeoutError, message: /busy-3b/ },
    );
    t.deepEqual(
      handled.map((one) => [one.error, one.lock.key]),
      [[error, "busy-3b"]],
    );
  });
}

test.serial("the call waits for the promise of the handler, and throws its error", async (t) => {
  await using _ = await obtain("busy-4");
  const written = deferred();
  handle = () => written.promise;
  let isOver = false;
  const call = withLock("busy-4", ONCE, () => t.fail()).finally(() => (isOver = true));
  const checked = t.throwsAsync(call, { instanceOf: BusyError });
  await new Promise(setImmediate);
  t.false(isOver);
  written.reject(new BusyError());
  await checked;
});

test.serial("whatever the handler returns, the body does not run", async (t) => {
  await using _ = await obtain("busy-5");
  for (const result of [true, "retry", Promise.resolve(true), null]) {
    handle = () => result as unknown as void;
    await t.throwsAsync(
      withLock("busy-5", ONCE, () => t.fail()),
      { instanceOf: LockWaitTimeoutError },
    );
  }
});

test.serial("the handler runs in the async context of the call", async (t) => {
  await using _ = await obtain("busy-6");
  const seen: (string | undefined)[] = [];
  handle = () => void seen.push(requests.getStore());
  const calls = ["one", "two"].map((request) =>
    requests.run(request, () =>
      t.throwsAsync(withLock(["busy-6", `busy-6 ${request}`], ONCE, () => t.fail())),
    ),
  );
  await Promise.all(calls);
  t.deepEqual(new Set(seen), new Set(["one", "two"]));
});

test.serial("a call with its own `onFailure` does not use the handler", async (t) => {
  await using _ = await obtain("busy-7");
  const throwing = { ...ONCE, onFailure: "throw" } as const;
  await t.throwsAsync(
    withLock("busy-7", throwing, () => t.fail()),
    { instanceOf: LockWaitTimeoutError },
  );
  await t.throwsAsync(tagged(t, "busy-7", {}, BusyError), { instanceOf: BusyError });
  await tagged(t, "busy-7", { onFailure: "skip" });
  t.is(await tryObtain("busy-7"), undefined);
  t.is(await withLock("busy-7", { ...ONCE, onFailure: "skip" }, () => t.fail()), undefined);
  await t.throwsAsync(
    withLock(["busy-7", "busy-7b"], throwing, () => t.fail()),
    { instanceOf: LockWaitTimeoutError },
  );
  t.deepEqual(handled, []);
});

test.serial("the handler does not get an abort or an unreachable store", async (t) => {
  await using _ = await obtain("busy-8");
  const reason = new LockWaitTimeoutError("of another lock");
  const signal = AbortSignal.abort(reason);
  for (const key of ["busy-8", ["busy-8", "busy-8b"]]) {
    t.is(await t.throwsAsync(withLock(key, { signal }, () => t.fail())), reason);
  }
  await t.throwsAsync(
    withLock("busy-8", { ...ONCE, store: "gone" }, () => t.fail()),
    { instanceOf: LockUnreachableError },
  );
  t.deepEqual(handled, []);
});

test.serial("configure() rejects a handler that is not a function", async (t) => {
  await shutdown();
  for (const onFailure of ["skip", null, {}, true]) {
    const configuration = { store: memoryStore(), onFailure, woven: false } as unknown as Configuration;
    t.throws(() => configure(configuration), {
      instanceOf: LockOptionError,
      message: /^Expected `onFailure` of configure\(\) to be a function, got .*the plugin's `defaults`$/,
    });
  }
});
