import test from "ava";
import { withLock } from "../../runtime/with-lock";
import { configure, shutdown } from "../../runtime/configure";
import { LockClosedError, LockLostError } from "../../runtime/errors";
import { memoryStore } from "../../runtime/stores/memory";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { inTheMiddleOf } from "../support/in-the-middle-of";
import { job, passes } from "../support/jobs";
import { replyLate, TamperedStore } from "../support/tampered-store";

// A shutdown, from when it waits for those who are inside until it takes what they hold.

/** A fleet of which this process is one. */
function configured(): Fleet {
  const fleet = new Fleet();
  const logger = { warn: (message: string) => void fleet.warnings.push(message) };
  configure({ store: fleet.store, clock: fleet.clock, logger }, "woven");
  return fleet;
}

test.serial(
  "at the moment when nobody is inside any more, nobody gets in whose lock would be taken away",
  async (t) => {
    const fleet = configured();
    const [dropReply, takeReply] = [deferred(), deferred()];
    const { body, running, end } = job();
    const holder = withLock("shutdown-1", {}, body);
    await running;
    fleet.store.onDrop = replyLate(dropReply.promise);
    fleet.store.onTake = replyLate(takeReply.promise);
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
    takeReply.resolve(); // Both come in one piece of the stream.
    t.is(await holder, "done");
    await Promise.all([other, down]);
    t.is(revoked, undefined);
    t.true(await fleet.isForgotten("shutdown-1b"));
  },
);

test.serial("a shutdown that begins in the middle of a grant waits for the body", async (t) => {
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

test.serial("so does one that begins in the middle of the grant of the last of several keys", async (t) => {
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
});

test.serial(
  "who has handed its lock on in good order is not told that it was lost when it is taken from the next",
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
    fleet.store.onLook = async (send) => {
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

test.serial("a store that cannot be closed is told of, and the others are closed all the same", async (t) => {
  const stores = { broken: new TamperedStore(memoryStore()), whole: new TamperedStore(memoryStore()) };
  stores.broken.close = () => {
    throw new Error("it is closed already");
  };
  configure({ store: memoryStore(), stores }, "woven");
  await t.throwsAsync(shutdown(), { message: "it is closed already" });
  t.true(stores.whole.closed);
});

test.serial(
  "a store that throws where its listening ends is warned of, and keeps nobody from the end",
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
    t.deepEqual(warnings, ["broken: the store did not end the listening: nobody listens"]);
  },
);
