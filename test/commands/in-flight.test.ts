import test from "ava";
import { NoReplyError } from "../../runtime/base/no-reply-error";
import { CommandBatch, InFlight, StoreCommand } from "../../runtime/commands/in-flight";
import { deferred } from "../support/deferred";
import { VirtualClock } from "../support/virtual-clock";
import { ProcessClock } from "../simulation/process-clock";

const SECOND = 1_000;

/** A process that can be suspended, in a world whose clock keeps running. */
function stallable(): { readonly world: VirtualClock; readonly clock: ProcessClock } {
  const world = new VirtualClock();
  return { world, clock: new ProcessClock(world, { rate: 1, startsAt: 1, bootStepMs: 0 }) };
}

for (const first of ["timer", "network"] as const) {
  test(`a reply that arrived while the process was suspended counts before its timeout (${first} first)`, async (t) => {
    const { world, clock } = stallable();
    const inFlight = new InFlight(clock, SECOND);
    const reply = deferred<string>();
    const asked = inFlight.ask(() => reply.promise);
    await world.settle();
    clock.freeze();
    clock.arrive(() => reply.resolve("yes"));
    await world.advance(1.2 * SECOND);
    clock.thaw(first);
    await world.settle();
    t.is(await asked, "yes");
    t.is(world.pendingTimers, 0);
  });
}

test("a command without a reply times out once the resumed process has read its input", async (t) => {
  const { world, clock } = stallable();
  const inFlight = new InFlight(clock, SECOND);
  const silent = t.throwsAsync(
    inFlight.ask(() => new Promise(() => {})),
    { instanceOf: NoReplyError },
  );
  await world.settle();
  clock.freeze();
  await world.advance(1.2 * SECOND);
  clock.thaw("timer");
  const later = inFlight.ask(() => new Promise(() => {}));
  later.catch(() => {});
  await world.settle();
  await silent;
  t.is(inFlight.size, 1, "a later command has its own timeout");
});

test("settled() resolves when the last command in flight has its reply, error, or timeout", async (t) => {
  const clock = new VirtualClock();
  const inFlight = new InFlight(clock, SECOND);
  await inFlight.settled(); // Nothing is in flight.
  const reply = deferred<string>();
  const failure = deferred<string>();
  const asked = inFlight.ask(() => reply.promise);
  const failed = t.throwsAsync(
    inFlight.ask(() => failure.promise),
    { message: "no" },
  );
  const silent = t.throwsAsync(
    inFlight.ask(() => new Promise(() => {})),
    {
      instanceOf: NoReplyError,
      name: "NoReplyError",
      message: "no reply from the store within 1000 ms",
    },
  );
  let settled = 0;
  for (let count = 0; count < 2; count += 1) void inFlight.settled().then(() => (settled += 1));
  t.is(inFlight.size, 3);
  reply.resolve("yes");
  failure.reject(new Error("no"));
  t.is(await asked, "yes");
  await failed;
  await clock.advance(SECOND - 1);
  t.is(settled, 0);
  await clock.advance(1);
  await silent;
  t.is(settled, 2);
  t.is(inFlight.size, 0);
  t.is(clock.pendingTimers, 0);
});

test("sends a single command in the next promise job, without waiting for a tick", async (t) => {
  const clock = new VirtualClock();
  const batch = new CommandBatch<StoreCommand<string>, string>(new InFlight(clock, SECOND), () => t.fail());
  let isSent = false;
  await Promise.resolve(); // The rest runs in a promise job, as after a reply. Ticks run only after all promise jobs.
  class Noting extends StoreCommand<string> {
    send(): Promise<string> {
      isSent = true;
      return Promise.resolve("yes");
    }
    onReply(): void {}
    onFailure(): void {
      t.fail();
    }
    onLateReply(): void {
      t.fail();
    }
  }
  batch.send(new Noting());
  await Promise.resolve();
  t.true(isSent);
  await clock.settle();
});
