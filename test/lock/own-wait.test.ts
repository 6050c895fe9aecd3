import test from "ava";
import { configure } from "../../runtime/config/configure";
import { trackBodies } from "../../runtime/lock/reentrancy";
import { withLock } from "../../runtime/with-lock";
import { acquire, assertHeld, open, release, retryCheck } from "../../runtime/woven/woven";
import { Fleet } from "../support/fleet";

// A call that waits for a lock of its own caller.

const fleet = new Fleet();
const warnings: string[] = [];
const OPTIONS = { retryTimes: 1, waitTime: "3s" } as const;

test.before(() => {
  configure(
    { store: fleet.store, clock: fleet.clock, logger: { warn: (line) => void warnings.push(line) } },
    "woven",
  );
});

function warningsOf(key: string): readonly string[] {
  return warnings.filter((line) => line.startsWith(key));
}

/** Runs the body as the weave does, with the key `LOCK_own_<part>`. */
async function woven<T>(site: string, part: string, body: () => Promise<T>): Promise<T> {
  const lock = open({ site, businessFlag: "own", ...OPTIONS }, part);
  while (!(await acquire(lock))) await retryCheck(lock);
  try {
    assertHeld(lock);
    return await body();
  } finally {
    await release(lock);
  }
}

async function messageOf(call: Promise<unknown>): Promise<string> {
  const result = call.then(
    () => "no error",
    (error: unknown) => String(error),
  );
  await fleet.clock.advance(10_000);
  return await result;
}

test.serial(
  "after the first timeout behind a holder of this process, the next timeout error names the call's own caller",
  async (t) => {
    const pay = (): Promise<string> =>
      woven("Orders.pay", "first", () => woven("Orders.audit", "first", () => Promise.resolve("in")));
    t.regex(
      await messageOf(pay()),
      /^LockWaitTimeoutError.*has been held in this process by Orders\.pay for/,
    );
    t.deepEqual(warningsOf("LOCK_own_first"), []);
    t.regex(
      await messageOf(pay()),
      /LOCK_own_first \(?.*has been held by your own caller, Orders\.pay, for 3000 ms .*Fix: use reentrant=true/,
    );
  },
);

test.serial("a call that waits for its own caller logs one warning after a second", async (t) => {
  trackBodies();
  const call = woven("Orders.pay", "warned", () => woven("Orders.audit", "warned", () => Promise.resolve()));
  const isRefused = t.throwsAsync(call, { message: /your own caller, Orders\.pay/ });
  await fleet.clock.advance(999);
  t.deepEqual(warningsOf("LOCK_own_warned"), []);
  await fleet.clock.advance(2);
  t.is(warningsOf("LOCK_own_warned").length, 1);
  t.regex(
    warningsOf("LOCK_own_warned")[0] ?? "",
    /Orders\.audit.* is held by your own caller, Orders\.pay\. .*Fix: use reentrant=true in both places/,
  );
  await fleet.clock.advance(10_000);
  await isRefused;
  t.is(warningsOf("LOCK_own_warned").length, 1);
});

test.serial("a call of withLock() names the withLock() around it", async (t) => {
  trackBodies();
  const call = withLock("own-by-hand", OPTIONS, () => withLock("own-by-hand", OPTIONS, () => "in"));
  t.regex(await messageOf(call), /own-by-hand has been held by your own caller, withLock\(\), for 3000 ms/);
  t.is(warningsOf("own-by-hand").length, 1);
});

test.serial("a call of several keys names the caller that holds one of them", async (t) => {
  trackBodies();
  const call = withLock("own-b", OPTIONS, () => withLock(["own-a", "own-b"], OPTIONS, () => "in"));
  t.regex(await messageOf(call), /own-b has been held by your own caller, withLock\(\)/);
});

test.serial(
  "a detached call that gets the lock soon after its caller has ended logs no warning",
  async (t) => {
    trackBodies();
    let detached: Promise<string> | undefined;
    await woven("Orders.pay", "detached", async () => {
      detached = woven("Orders.audit", "detached", () => Promise.resolve("in"));
      await fleet.clock.advance(500);
    });
    await fleet.clock.advance(1_000);
    t.is(await detached, "in");
    t.deepEqual(warningsOf("LOCK_own_detached"), []);
  },
);

test.serial(
  "a timeout error names no own caller if the holder is not a caller of the waiting call",
  async (t) => {
    trackBodies();
    let leave = (): void => {};
    const holder = woven("Orders.pay", "beside", () => new Promise<void>((resolve) => (leave = resolve)));
    await fleet.clock.settle();
    const call = woven("Orders.refund", "another", () =>
      woven("Orders.audit", "beside", () => Promise.resolve()),
    );
    t.regex(await messageOf(call), /has been held in this process by Orders\.pay for/);
    t.deepEqual(warningsOf("LOCK_own_beside"), []);
    leave();
    await holder;
  },
);
