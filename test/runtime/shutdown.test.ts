import test from "ava";
import { withLock } from "../../runtime/with-lock";
import { configure, shutdown } from "../../runtime/config/configure";
import { LockClosedError, LockLostError } from "../../runtime/base/errors";
import { memoryStore } from "../../runtime/stores/memory";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { inTheMiddleOf } from "../support/in-the-middle-of";
import { job, passes } from "../support/jobs";
import { replyLate, TamperedStore } from "../support/tampered-store";
import { until } from "../support/until";

// A shutdown, from when it waits for bodies until it releases their locks.

/** A fleet that this process is part of. */
function configured(): Fleet {
  const fleet = new Fleet();
  const logger = { warn: (message: string) => void fleet.warnings.push(message) };
  configure({ store: fleet.store, clock: fleet.clock, logger }, "woven");
  return fleet;
}

test.serial("shutdown() lets no body start whose lock it would release immediately", async (t) => {
  const fleet = configured();
  const [dropReply, takeReply] = [deferred(), deferred()];
  const { body, running, end } = job();
  const holder = withLock("shutdown-1", {}, body);
  await running;
  fleet.store.onRelease = replyLate(dropReply.promise);
  fleet.store.onAcquire = replyLate(takeReply.promise);
  let revoked: boolean | undefined;
  const other = t.throwsAsync(
    withLock("shutdown-1b", {}, (lock) => {
      revoked = lock.remaining() === 0;
    }),
    { instanceOf: LockClosedError },
  );
  end();
  await fleet.clock.settle();
  const down = shutdown({ patience: "10s" });
  dropReply.resolve();
  takeReply.resolve(); // Both replies arrive in one chunk.
  t.is(await holder, "done");
  await Promise.all([other, down]);
  t.is(revoked, undefined);
  t.true(await fleet.isForgotten("shutdown-1b"));
});

test.serial("shutdown() called during a grant waits for the body", async (t) => {
  const fleet = configured();
  let down: Promise<void> | undefined;
  inTheMiddleOf(t, "lockweave:grant", "shutdown-2", () => (down = shutdown({ patience: "10s" })));
  const call = withLock("shutdown-2", {}, async (lock) => {
    await passes(fleet.clock, 5_000);
    lock.assertHeld();
    return lock.signal.aborted;
  });
  await fleet.clock.advance(5_000);
  t.false(await call);
  await down;
  t.true(await fleet.isForgotten("shutdown-2"));
  t.is(fleet.clock.pendingTimers, 0);
});

test.serial(
  "shutdown() called during the grant of the last of several keys waits for the body",
  async (t) => {
    const fleet = configured();
    const keys = ["shutdown-4a", "shutdown-4b"];
    const ended: string[] = [];
    let down: Promise<unknown> | undefined;
    inTheMiddleOf(t, "lockweave:grant", "shutdown-4b", () => {
      down = shutdown({ patience: "10s" }).then(() => ended.push("shutdown"));
    });
    const call = withLock(keys, {}, async (lock) => {
      await passes(fleet.clock, 5_000);
      lock.assertHeld();
      ended.push("body");
    });
    await fleet.clock.advance(5_000);
    await Promise.all([call, down]);
    t.deepEqual(ended, ["body", "shutdown"]);
    for (const key of keys) t.true(await fleet.isForgotten(key));
  },
);

test.serial(
  "a holder that handed off its lock gets no error if shutdown() takes it from the next holder",
  async (t) => {
    const fleet = configured();
    const { body, running, end } = job();
    const holder = withLock("shutdown-3", {}, body);
    await running;
    const next = t.throwsAsync(
      withLock(
        "shutdown-3",
        {},
        (lock) =>
          new Promise((resolve) => {
            lock.signal.addEventListener("abort", resolve);
          }),
      ),
      { instanceOf: LockLostError },
    );
    await fleet.clock.settle();
    const look = deferred();
    fleet.store.onPeek = async (send) => {
      await look.promise;
      return await send();
    };
    end();
    await fleet.clock.settle();
    const down = shutdown({ patience: "0s" });
    await fleet.clock.settle();
    look.resolve();
    t.is(await holder, "done");
    await fleet.clock.advance(1_000);
    await Promise.all([next, down]);
    t.true(await fleet.isForgotten("shutdown-3"));
  },
);

test.serial("shutdown() leaves a store open that is configured again in the meantime", async (t) => {
  const store = new TamperedStore(memoryStore());
  configure({ store }, "woven");
  const { body, running, end } = job();
  const holder = withLock("shutdown-7", {}, body);
  await running;
  const down = shutdown();
  configure({ store }, "woven");
  end();
  t.is(await holder, "done");
  await down;
  t.false(store.closed);
  t.is(await withLock("shutdown-7", {}, () => "again"), "again");
  await shutdown();
  t.true(store.closed);
});

test.serial(
  "a shutdown leaves a store open until an earlier shutdown has ended, and waits for it",
  async (t) => {
    const store = new TamperedStore(memoryStore());
    configure({ store }, "woven");
    const { body, running, end } = job();
    const holder = withLock("shutdown-8", {}, body);
    await running;
    const first = shutdown();
    configure({ store }, "woven");
    let hasEnded = false;
    const second = shutdown().then(() => (hasEnded = true));
    await new Promise((resolve) => void setImmediate(resolve));
    t.false(hasEnded || store.closed);
    end();
    t.is(await holder, "done");
    await Promise.all([first, second]);
    t.true(store.closed);
  },
);

test.serial("shutdown() rejects if a store cannot be closed, and closes the others", async (t) => {
  const stores = { broken: new TamperedStore(memoryStore()), whole: new TamperedStore(memoryStore()) };
  stores.broken.close = () => {
    throw new Error("it is closed already");
  };
  configure({ store: memoryStore(), stores }, "woven");
  await t.throwsAsync(shutdown(), { message: "it is closed already" });
  t.true(stores.whole.closed);
});

test.serial(
  "shutdown() warns about a store that throws when its listener is removed, and completes",
  async (t) => {
    const stores = { broken: new TamperedStore(memoryStore()), whole: new TamperedStore(memoryStore()) };
    stores.broken.listen = () => () => {
      throw new Error("nobody listens");
    };
    const warnings: string[] = [];
    configure(
      { store: memoryStore(), stores, logger: { warn: (message) => void warnings.push(message) } },
      "woven",
    );
    const { body, running, end } = job();
    const holder = withLock("shutdown-6", { store: "broken" }, body);
    await running;
    const down = shutdown();
    end();
    t.is(await holder, "done");
    await down;
    t.true(stores.broken.closed && stores.whole.closed);
    t.deepEqual(warnings, ["broken: could not unsubscribe from the store: nobody listens"]);
  },
);

test.serial(
  "a shutdown that fails while an earlier one waits for a body rejects for its caller only",
  async (t) => {
    configured();
    const { body, running, end } = job();
    const holder = withLock("shutdown-two", {}, body);
    await running;
    const first = shutdown({ patience: "10s" });
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    t.teardown(() => process.removeListener("unhandledRejection", note));
    let isClosing = false;
    const store = Object.assign(memoryStore(), {
      close() {
        isClosing = true;
        return Promise.reject(new Error("this store cannot be closed"));
      },
    });
    configure({ store }, "woven");
    const second = t.throwsAsync(shutdown({ patience: "0ms" }), { message: /this store cannot be closed/ });
    await until(() => isClosing);
    for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate); // Node reports unhandled rejections between turns.
    end();
    await Promise.all([holder, first, second]);
    t.deepEqual(unhandled, []);
  },
);

test.serial(
  "a configuration whose signals cannot be heard is not in force, and its store is closed",
  async (t) => {
    let isClosed = false;
    const store = Object.assign(memoryStore(), { close: () => Promise.resolve(void (isClosed = true)) });
    const refuse = (event: string | symbol): void => {
      if (event === "SIGUSR2") throw new Error("no listeners here");
    };
    process.on("newListener", refuse);
    t.teardown(() => process.removeListener("newListener", refuse));
    t.throws(() => configure({ store, shutdownOn: ["SIGUSR2"] }, "woven"), { message: "no listeners here" });
    await until(() => isClosed);
    const fleet = configured();
    t.is(await withLock("shutdown-heard", {}, () => "in"), "in");
    t.deepEqual(fleet.warnings, []);
  },
);
