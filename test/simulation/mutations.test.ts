import test, { type ExecutionContext } from "ava";
import { Lease } from "../../runtime/lease";
import { Line } from "../../runtime/line";
import { Lock } from "../../runtime/lock";
import { FENCING_STRIDE, type AcquireReply, type Store } from "../../runtime/store";
import { but, type Tamper } from "./tampering";
import { KINDS } from "./weather";
import { simulate } from "./world";

// What never fails proves nothing. Each test puts one fault into the store or into the runtime, and the
// simulation must find it, by the invariant that is there for it.

const ENOUGH_SEEDS = 1_000;

async function finds(t: ExecutionContext, weather: string, what: RegExp, tamper?: Tamper): Promise<void> {
  const others: string[] = [];
  for (let seed = KINDS.indexOf(weather); seed < ENOUGH_SEEDS; seed += KINDS.length) {
    const { problems } = await simulate(seed, tamper);
    const found = problems.find((problem) => what.test(problem));
    if (found !== undefined) {
      t.pass();
      return;
    }
    others.push(...problems);
  }
  t.fail(`It was not found. What else was: ${others.slice(0, 3).join("; ") || "nothing"}`);
}

// ---- faults of the store --------------------------------------------------------------------------------

test("a store that grants a key twice is found out", async (t) => {
  let asked = 0;
  const generous = (store: Store): Store =>
    but(store, {
      async acquire(request): Promise<AcquireReply> {
        const reply = await store.acquire(request);
        asked += 1;
        return reply.granted || asked % 10 > 0 ? reply : { granted: true, fresh: true };
      },
    });
  await finds(t, "calm", /was granted to .* while .* held it/, generous);
});

test("a store whose keys end before their time is found out, whether anybody else comes or not", async (t) => {
  const shorter = <Request extends { readonly lockTimeMs: number }>(request: Request): Request => ({
    ...request,
    lockTimeMs: request.lockTimeMs / 2,
  });
  const hasty = (store: Store): Store =>
    but(store, { renew: (holders) => store.renew(holders.map(shorter)) });
  await finds(t, "lossy", /was granted to .* while .* held it|lost its lock/, hasty);
});

test("a store that forgets a place in the queue is found out", async (t) => {
  const forgetful = (store: Store): Store =>
    but(store, {
      async wait(request): Promise<AcquireReply> {
        const reply = await store.wait(request);
        if (!reply.granted) await store.leave(request.key, request.requestId);
        return reply;
      },
    });
  await finds(t, "calm", /has been free for .* while .* waits/, forgetful);
});

test("a store that gives no hints is found out", async (t) => {
  // What the queue gave is taken at the next look, so nothing but time is lost.
  const silent = (store: Store): Store => but(store, { listen: () => () => {} });
  await finds(t, "calm", /has been free for .* while .* waits|it took/, silent);
});

test("a store without a queue is found out", async (t) => {
  const queueless = (store: Store): Store => but(store, { wait: (request) => store.acquire(request) });
  await finds(t, "calm", /before .*, which came first to the queue|has been free/, queueless);
});

test("a store whose tokens do not outlive it is found out", async (t) => {
  const counting = (store: Store): Store => {
    let last = 0;
    const counted = <Reply extends AcquireReply>(reply: Reply): Reply =>
      reply.granted && reply.fencingToken !== undefined
        ? { ...reply, fencingToken: (last += FENCING_STRIDE) }
        : reply;
    return but(store, {
      acquire: async (request) => counted(await store.acquire(request)),
      wait: async (request) => counted(await store.wait(request)),
      async release(key, requestId, next) {
        const { outcome, handedOn } = await store.release(key, requestId, next);
        return handedOn === undefined ? { outcome } : { outcome, handedOn: counted(handedOn) };
      },
    });
  };
  await finds(t, "forgetful", /token \d{1,6} was drawn after \d{1,6} /, counting);
});

test("a store that never forgets who left is found out", async (t) => {
  const clinging = (store: Store): Store => but(store, { leave: async () => {} });
  await finds(t, "lossy", /was offered .*, and has left/, clinging);
});

// ---- faults of the runtime ------------------------------------------------------------------------------

/** For the time of the test. The simulation itself does not run while a fault of another test is in. */
async function withFault<T extends object, Name extends keyof T>(
  target: T,
  name: Name,
  fault: (original: T[Name]) => T[Name],
  look: () => Promise<void>,
): Promise<void> {
  const original = target[name];
  target[name] = fault(original);
  try {
    await look();
  } finally {
    target[name] = original;
  }
}

test.serial("a lease that counts from its reply, and not from its request, is found out", async (t) => {
  const longer = (remaining: Lease["remaining"]): Lease["remaining"] =>
    function (this: Lease, now) {
      return remaining.call(this, now - 100); // What a reply takes, now and then.
    };
  await withFault(Lease.prototype, "remaining", longer, () =>
    finds(t, "lossy", /is sure to hold .*, and (nobody|process \d+) has it/),
  );
});

test.serial("a line that lets the last one in first is found out", async (t) => {
  const overtaking = (join: Line["join"]): Line["join"] =>
    function (this: Line, lock) {
      const { first } = this;
      if (first === undefined) return join.call(this, lock);
      this.first = lock;
      join.call(this, first);
    };
  await withFault(Line.prototype, "join", overtaking, () => finds(t, "calm", /overtook/));
});

test.serial("a line that forgets to wake its first is found out", async (t) => {
  await withFault(
    Lock.prototype,
    "wake",
    () => () => {},
    () => finds(t, "calm", /has been free for .* while .* waits|it took/),
  );
});

test.serial("a lock that does not tell that it was lost is found out", async (t) => {
  await withFault(
    Lock.prototype,
    "lost",
    () => () => {},
    () => finds(t, "freezing", /lost its lock .* ms ago, without a signal/),
  );
});

test.serial("a release that hides that the lock was lost is found out", async (t) => {
  const hiding = (release: Lock["release"]): Lock["release"] =>
    async function (this: Lock) {
      await release.call(this).catch(() => {});
    };
  await withFault(Lock.prototype, "release", hiding, () =>
    finds(t, "freezing", /did not learn that it was not alone/),
  );
});

test.serial("a process that keeps a key to itself is found out", async (t) => {
  const greedy =
    (since: (first: Lock) => number, countsAs: number) =>
    (begin: Line["begin"]): Line["begin"] =>
      function (this: Line, lease, first, now) {
        let count = 0;
        lease.turn = {
          get since() {
            return since(first);
          },
          get handOns() {
            return count * countsAs;
          },
          set handOns(_) {
            count += 1;
          },
        };
        begin.call(this, lease, first, now);
      };
  // Not 0, for then it would be the tokens, which rise no more, that are found out.
  const tooFew = greedy(({ heldSince }) => heldSince, 1 / 4);
  await withFault(Line.prototype, "begin", tooFew, () => finds(t, "calm", /let in \d+ on one grant/));
  const never = greedy(() => Infinity, 1);
  await withFault(Line.prototype, "begin", never, () =>
    finds(t, "calm", /handed .* on .* ms after the first had it/),
  );
});

test.serial("a caller that is kept longer than its budget is found out", async (t) => {
  const budget = Object.getOwnPropertyDescriptor(Lock.prototype, "budgetEndsAt");
  t.truthy(budget, "the fault is put into an accessor of this name");
  Object.defineProperty(Lock.prototype, "budgetEndsAt", {
    ...budget,
    get(this: Lock): unknown {
      return Number(budget?.get?.call(this)) + 400;
    },
  });
  try {
    await finds(t, "lossy", /(gave up|entered) after .* ms of/);
  } finally {
    Object.defineProperty(Lock.prototype, "budgetEndsAt", budget ?? {});
  }
});
