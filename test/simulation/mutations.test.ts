import type { ExecutionContext } from "ava";
import * as aborter from "../../runtime/lock/aborter";
import { Lock } from "../../runtime/lock/lock";
import type { Locker } from "../../runtime/lock/locker";
import { MultiLock } from "../../runtime/lock/multi-lock";
import { Wait } from "../../runtime/lock/wait";
import { AcquireCommand, Acquisition } from "../../runtime/queue/acquisition";
import { ReleaseRetries } from "../../runtime/queue/release-retries";
import { Lease, type LeavingHolder } from "../../runtime/queue/lease";
import { ExclusiveQueue } from "../../runtime/queue/exclusive-queue";
import { SharedLease } from "../../runtime/queue/shared-lease";
import { HandOffTurn } from "../../runtime/queue/hand-off-turn";
import type { Waiter } from "../../runtime/queue/waiter";
import * as rootContext from "../../runtime/base/root-context";
import { FENCING_STRIDE, type AcquireReply, type AcquireRequest } from "../../runtime/stores/port";
import { Election } from "../../runtime/stores/quorum/election";
import { Renewal } from "../../runtime/stores/quorum/renewal";
import { reservedFor } from "../../runtime/stores/value";
import { Beliefs } from "./beliefs";
import * as contexts from "./contexts";
import { explore } from "./explorer/explore";
import { planOf } from "./explorer/plans";
import { SimulatedProcess } from "./process";
import { but, type Tamper } from "./tampering";
import type { FlatStore } from "../support/flat-store";
import { findsIn, withFault, WRONG_BELIEF } from "./planting";
import { simulate } from "./world";
import { inMatrix, inMatrixSerially, outsideMatrix, outsideMatrixSerially } from "../support/suites";

// A check that never fails proves nothing. Each test plants one fault in the store or in the runtime. The simulation or the
// explorer must find it, by the invariant for it.

/** Whether the simulation of Redis finds the fault in this weather. */
function finds(
  t: ExecutionContext,
  weather: string,
  what: RegExp,
  tamper?: Tamper,
  seeds?: number,
): Promise<void> {
  return findsIn((seed) => simulate(seed, tamper), t, weather, what, seeds);
}

async function explorerFinds(t: ExecutionContext, plan: string, what: RegExp): Promise<void> {
  t.timeout(300_000);
  const { schedules, failures } = await explore(planOf(plan), { deviations: 2 });
  const [failure] = failures;
  if (failure === undefined) return t.fail(`The fault was not found in ${schedules} schedules`);
  t.log(`schedule ${schedules}: ${failure.problems[0] ?? ""}`);
  t.regex(failure.problems.join("; "), what);
}

// ---- faults of the store --------------------------------------------------------------------------------

outsideMatrix("the simulation finds a store that grants a key twice", async (t) => {
  let asked = 0;
  const generous = (store: FlatStore): FlatStore =>
    but(store, {
      async acquire(request, timeoutMs): Promise<AcquireReply> {
        const reply = await store.acquire(request, timeoutMs);
        asked += 1;
        return reply.acquired || asked % 10 > 0 ? reply : { acquired: true };
      },
    });
  await finds(t, "calm", /was granted to .* while .* held it/, generous);
});

outsideMatrix("the simulation finds a store whose keys expire too early", async (t) => {
  const hasty = (store: FlatStore): FlatStore =>
    but(store, {
      acquire: (request, timeoutMs) =>
        store.acquire({ ...request, lockTimeMs: request.lockTimeMs / 2 }, timeoutMs),
      enqueue: (request, timeoutMs) =>
        store.enqueue({ ...request, lockTimeMs: request.lockTimeMs / 2 }, timeoutMs),
    });
  await finds(t, "lossy", /was granted to .* while .* held it|did not learn/, hasty);
});

outsideMatrix("the simulation finds a store whose renewals do not extend holds", async (t) => {
  const shortening = (store: FlatStore): FlatStore =>
    but(store, {
      renew: (requests, timeoutMs) =>
        store.renew(
          requests.map((request) => ({ ...request, lockTimeMs: 1 })),
          timeoutMs,
        ),
    });
  await finds(
    t,
    "lossy",
    /was granted to .* while .* held it|was renewed for .* while|did not learn/,
    shortening,
  );
});

outsideMatrix("the simulation finds a store that forgets a ticket in the queue", async (t) => {
  const forgetful = (store: FlatStore): FlatStore =>
    but(store, {
      async enqueue(request, timeoutMs): Promise<AcquireReply> {
        const reply = await store.enqueue(request, timeoutMs);
        if (!reply.acquired) await store.dequeue(request.key, request.ticket, timeoutMs);
        return reply;
      },
    });
  await finds(t, "calm", /has been free for .* while .* waits|before .*, which came first/, forgetful);
});

inMatrix("the simulation finds a store that frees revoked holds", async (t) => {
  const freeing = (store: FlatStore): FlatStore =>
    but(store, { revoke: async (request, timeoutMs) => (await store.release(request, timeoutMs)).released });
  await finds(t, "sleepy", WRONG_BELIEF, freeing);
});

outsideMatrix("the simulation finds a store that renews revoked holds", async (t) => {
  const forgiving = (store: FlatStore): FlatStore => but(store, { revoke: async () => true });
  await finds(t, "sleepy", /was renewed for .*, which is revoked/, forgiving);
});

outsideMatrix("the simulation finds a store that sends no wake-ups", async (t) => {
  // Waiters find what the queue reserved at their next check, so only time is lost.
  const silent = (store: FlatStore): FlatStore => but(store, { listen: () => () => {} });
  await finds(t, "calm", /has been free for .* while .* waits|it took/, silent);
});

outsideMatrix("the simulation finds a store without a queue", async (t) => {
  const queueless = (store: FlatStore): FlatStore =>
    but(store, { enqueue: (request, timeoutMs) => store.acquire(request, timeoutMs) });
  await finds(t, "calm", /before .*, which came first to the queue|has been free/, queueless);
});

inMatrix("the simulation finds a store whose fencing tokens do not outlive its data", async (t) => {
  const counting = (store: FlatStore): FlatStore => {
    let last = 0;
    const counted = <Reply extends object>(reply: Reply): Reply =>
      "fencingToken" in reply ? { ...reply, fencingToken: (last += FENCING_STRIDE) } : reply;
    return but(store, {
      acquire: async (request, timeoutMs) => counted(await store.acquire(request, timeoutMs)),
      enqueue: async (request, timeoutMs) => counted(await store.enqueue(request, timeoutMs)),
      async releaseAndEnqueue(held, request, timeoutMs) {
        const reply = await store.releaseAndEnqueue(held, request, timeoutMs);
        if (!reply.released || typeof reply.next !== "object") return reply;
        return { ...reply, next: counted(reply.next) };
      },
    });
  };
  await finds(t, "forgetful", /token \d{1,6} was drawn after \d{1,6} /, counting);
});

outsideMatrix("the simulation finds a store that never removes waiters that left", async (t) => {
  const clinging = (store: FlatStore): FlatStore => but(store, { dequeue: async () => {} });
  await finds(t, "lossy", /was offered .*, and has left/, clinging);
});

/** Grants what the store refuses because several hold the key. */
const grantsBeside =
  (isGranted: (request: AcquireRequest) => boolean): Tamper =>
  (store) => {
    const granted = (request: AcquireRequest, reply: AcquireReply): AcquireReply =>
      !reply.acquired && reply.holder?.startsWith("shared:") === true && isGranted(request)
        ? { acquired: true }
        : reply;
    return but(store, {
      acquire: async (request, timeoutMs) => granted(request, await store.acquire(request, timeoutMs)),
      enqueue: async (request, timeoutMs) => granted(request, await store.enqueue(request, timeoutMs)),
    });
  };

outsideMatrix("the simulation finds a store that admits a writer while readers are inside", async (t) => {
  const blind = grantsBeside(({ permits = 1 }) => permits === 1);
  await finds(t, "calm", /was granted to .* while .* held it/, blind);
});

outsideMatrix("the simulation finds a store that admits more callers than permits", async (t) => {
  const generous = grantsBeside(({ permits = 1 }) => permits === 2 || permits === 3);
  await finds(t, "calm", /was granted to .* while .* and .* held it/, generous);
});

inMatrix("the simulation finds a store that reports more permits than it granted", async (t) => {
  const boasting: Tamper = (store) => {
    const boasted = ({ count }: AcquireRequest, reply: AcquireReply): AcquireReply =>
      reply.acquired && count !== undefined ? { ...reply, count } : reply;
    return but(store, {
      acquire: async (request, timeoutMs) => boasted(request, await store.acquire(request, timeoutMs)),
      enqueue: async (request, timeoutMs) => boasted(request, await store.enqueue(request, timeoutMs)),
    });
  };
  await finds(t, "calm", /was granted to .* while .* held it|believe they hold/, boasting);
});

outsideMatrix("the simulation finds a store that lets readers overtake a waiting writer", async (t) => {
  const partial = grantsBeside(({ permits = 1 }) => permits > 3);
  await finds(t, "calm", /before .*, which came first to the queue/, partial);
});

inMatrix("the simulation finds a store that does not wake the next waiter when there is room", async (t) => {
  const keyOf = new Map<string, string>();
  const silent = (store: FlatStore): FlatStore =>
    but(store, {
      enqueue(request, timeoutMs) {
        keyOf.set(request.ticket, request.key);
        return store.enqueue(request, timeoutMs);
      },
      listen: (listener) =>
        store.listen({
          ...listener,
          onWakeUp(ticket) {
            const looked = store.peek([keyOf.get(ticket ?? "") ?? ""], 1);
            void looked.then(([value]) => {
              if (!String(value).startsWith("shared:")) listener.onWakeUp(ticket);
            });
          },
        }),
    });
  await finds(t, "calm", /has been free for .* while .* waits|it took/, silent);
});

inMatrix("the simulation finds a store that ends all shared holds with the first release", async (t) => {
  const hasty = (store: FlatStore): FlatStore =>
    but(store, {
      async release(request, timeoutMs) {
        const { holds } = await store.inspect(request.key, timeoutMs);
        const reply = await store.release(request, timeoutMs);
        for (const { value } of reply.released ? holds : [])
          await store.release({ key: request.key, requestId: value }, timeoutMs);
        return reply;
      },
    });
  await finds(t, "calm", /lost its lock in calm weather|did not learn|believes it holds/, hasty);
});

function lockerOf(one: Waiter | Lock): Locker {
  return (one as Lock | Wait).terms.locker;
}

// ---- faults of the runtime ------------------------------------------------------------------------------

outsideMatrixSerially(
  "the simulation finds a lease that counts from its reply instead of its command",
  async (t) => {
    const longer = (prove: Lease["prove"]): Lease["prove"] =>
      function (this: Lease, sentAt, lockTimeMs, trustedSince) {
        prove.call(this, sentAt + 100, lockTimeMs, trustedSince); // Some replies take this long.
      };
    await withFault(Lease.prototype, "prove", longer, () => finds(t, "lossy", WRONG_BELIEF));
  },
);

outsideMatrixSerially("the simulation finds a deadline without clock drift", async (t) => {
  const exact = (prove: Lease["prove"]): Lease["prove"] =>
    function (this: Lease, sentAt, lockTimeMs, trustedSince) {
      prove.call(this, sentAt + lockTimeMs * 0.01 + 2, lockTimeMs, trustedSince);
    };
  await withFault(Lease.prototype, "prove", exact, () => finds(t, "lossy", WRONG_BELIEF));
});

outsideMatrixSerially(
  "the explorer finds a check that reads the clock before it checks for a suspension",
  async (t) => {
    const hasty = (): Lock["remaining"] =>
      function (this: Lock) {
        const { clock, manager } = lockerOf(this);
        const now = clock.now();
        return Math.max(this.sureUntil(manager.certainty.trustedSince()) - now, 0);
      };
    await withFault(Lock.prototype, "remaining", hasty, () =>
      explorerFinds(t, "a process that is stopped", WRONG_BELIEF),
    );
  },
);

type Hear = Acquisition["onReply"];

inMatrixSerially(
  "the simulation and the explorer find a hold that is trusted without a renewal",
  async (t) => {
    const sentBy = new WeakMap<Acquisition, Map<string, AcquireCommand>>();
    const noting = (note: Acquisition["sent"]): Acquisition["sent"] =>
      function (this: Acquisition, one) {
        const sent = sentBy.get(this) ?? new Map<string, AcquireCommand>();
        sentBy.set(this, sent);
        if (one instanceof AcquireCommand) sent.set(one.request.requestId, one);
        note.call(this, one);
      };
    // Counts from the command that found the hold, as if that command had acquired it.
    const finding = (hear: Hear): Hear =>
      function (this: Acquisition, attempt, reply) {
        const found = reply.acquired ? undefined : sentBy.get(this)?.get(reply.holder ?? "");
        if (found === undefined || found === attempt) return hear.call(this, attempt, reply);
        Object.assign(found, { sentAt: attempt.sentAt });
        hear.call(this, found, { acquired: true });
      };
    await withFault(Acquisition.prototype, "sent", noting, () =>
      withFault(Acquisition.prototype, "onReply", finding, async () => {
        await finds(t, "lossy", WRONG_BELIEF);
        await explorerFinds(t, "two processes", WRONG_BELIEF);
      }),
    );
  },
);

inMatrixSerially(
  "the simulation and the explorer find a caller that mistakes a hold of its process for its own",
  async (t) => {
    const finding = (hear: Hear): Hear =>
      function (this: Acquisition, attempt, reply) {
        const isOurs =
          !reply.acquired && reply.holder?.startsWith(attempt.request.requestId.slice(0, 12)) === true;
        hear.call(this, attempt, isOurs ? { acquired: true } : reply);
      };
    await withFault(Acquisition.prototype, "onReply", finding, async () => {
      await finds(t, "lossy", WRONG_BELIEF);
      await explorerFinds(t, "two processes", WRONG_BELIEF);
    });
  },
);

/** Gives all commands of one acquisition, and its ticket, the same ID. */
async function withInheritedIds(look: () => Promise<void>): Promise<void> {
  const ids = new WeakMap<Acquisition, string>();
  let current: string | undefined;
  const { prototype } = Acquisition;
  const idOf = (acquisition: Acquisition): string => {
    const id = ids.get(acquisition) ?? acquisition.ticket.id;
    ids.set(acquisition, id);
    return id;
  };
  const within = <Result>(acquisition: Acquisition, work: () => Result): Result => {
    const before = current;
    current = idOf(acquisition);
    try {
      return work();
    } finally {
      current = before;
    }
  };
  const inheriting = (next: Wait["nextRequestId"]): Wait["nextRequestId"] =>
    function (this: Wait) {
      return current ?? next.call(this);
    };
  await withFault(Wait.prototype, "nextRequestId", inheriting, () =>
    withFault(
      prototype,
      "ask",
      (ask) =>
        function (this: Acquisition, first) {
          within(this, () => ask.call(this, first));
        },
      () =>
        withFault(
          prototype,
          "requestFor",
          (requestFor) =>
            function (this: Acquisition, first) {
              return within(this, () => requestFor.call(this, first));
            },
          () =>
            withFault(
              prototype,
              "onReply",
              (hear) =>
                function (this: Acquisition, attempt, reply) {
                  within(this, () => hear.call(this, attempt, reply));
                },
              look,
            ),
        ),
    ),
  );
}

outsideMatrixSerially(
  "the simulation and the explorer find a request ID that two commands share",
  async (t) => {
    const what = /is the request ID of two commands/;
    await withInheritedIds(() => finds(t, "disorderly", what));
    await withInheritedIds(() => explorerFinds(t, "two processes", what));
  },
);

inMatrixSerially("the explorer finds a reservation that counts as a hold with its ID", async (t) => {
  // The first engine had this fault. A delayed acquire of a caller that had left came after an enqueue with the same ID, and
  // the reservation for that ID counted as a grant of the whole lock time.
  const reserved = (hear: Hear): Hear =>
    function (this: Acquisition, attempt, reply) {
      const isOurs = !reply.acquired && reply.holder === reservedFor(attempt.request.requestId);
      hear.call(this, attempt, isOurs ? { acquired: true } : reply);
    };
  // The shared ID alone must not reveal the fault.
  const silent = (): Beliefs["acquireSent"] => () => {};
  await withFault(Beliefs.prototype, "acquireSent", silent, () =>
    withFault(Acquisition.prototype, "onReply", reserved, () =>
      withInheritedIds(() => explorerFinds(t, "a hand-off", WRONG_BELIEF)),
    ),
  );
});

outsideMatrixSerially(
  "the simulation finds a release of a hold that may still be found and trusted",
  async (t) => {
    const hasty = (fail: Acquisition["onFailure"]): Acquisition["onFailure"] =>
      function (this: Acquisition, attempt, error) {
        const { key, requestId, lockTimeMs } = attempt.request;
        fail.call(this, attempt, error);
        lockerOf(attempt.caller).manager.releaseRetries.release({ key, requestId }, lockTimeMs);
      };
    await withFault(Acquisition.prototype, "onFailure", hasty, () =>
      finds(t, "changeable", /and has released it/),
    );
  },
);

inMatrixSerially(
  "the simulation finds keys that are acquired in the order in which they are listed",
  async (t) => {
    type LocksOf = SimulatedProcess["locks"];
    const asNamed = (locksOf: LocksOf): LocksOf =>
      function (this: SimulatedProcess, keys, options) {
        return Object.defineProperty(locksOf.call(this, keys, options), "keys", {
          value: [...new Set(keys)],
        });
      };
    await withFault(SimulatedProcess.prototype, "locks", asNamed, () =>
      finds(t, "calm", /callers wait forever|were not acquired|it took/),
    );
  },
);

outsideMatrixSerially("the simulation finds a key of a multi-key lock that is not released", async (t) => {
  const kept = new WeakSet<Lock>();
  const choosing = (release: MultiLock["release"]): MultiLock["release"] =>
    function (this: MultiLock) {
      const [first] = this.locks;
      if (first !== undefined) kept.add(first);
      return release.call(this);
    };
  const keeping = (release: Lock["release"]): Lock["release"] =>
    function (this: Lock) {
      return kept.has(this) ? Promise.resolve() : release.call(this);
    };
  await withFault(MultiLock.prototype, "release", choosing, () =>
    withFault(Lock.prototype, "release", keeping, () =>
      finds(t, "calm", /has been free for .* while .* waits|callers wait forever|were not acquired|it took/),
    ),
  );
});

outsideMatrixSerially("the simulation finds a grant that is kept after its waiter gave up", async (t) => {
  const keeping = (): ReleaseRetries["release"] => () => {};
  await withFault(ReleaseRetries.prototype, "release", keeping, () =>
    finds(t, "changeable", /has been free for .* while .* waits/),
  );
});

outsideMatrixSerially("the simulation finds a hand-off to a waiter with a longer lock time", async (t) => {
  interface HandingOff {
    readonly first: Waiter | undefined;
    handOff(leaving: LeavingHolder, now: number): boolean;
  }
  const generous = (handOff: HandingOff["handOff"]): HandingOff["handOff"] =>
    function (this: HandingOff, leaving, now) {
      const { lease } = leaving;
      const { lockTimeMs } = lease;
      const longerMs = this.first?.terms.lockTimeMs ?? lockTimeMs;
      Object.assign(lease, { lockTimeMs: longerMs, sureUntil: () => Infinity });
      const isHandedOff = handOff.call(this, leaving, now);
      Reflect.deleteProperty(lease, "sureUntil");
      Object.assign(lease, { lockTimeMs });
      return isHandedOff;
    };
  const prototype = ExclusiveQueue.prototype as unknown as HandingOff;
  await withFault(prototype, "handOff", generous, () => finds(t, "calm", /entered with .* ms of/));
});

outsideMatrixSerially(
  "the simulation finds readers that join a hold past a waiting writer of another process",
  async (t) => {
    const open = (): SharedLease["mayJoin"] =>
      function (this: SharedLease) {
        return this.hasRoom;
      };
    await withFault(SharedLease.prototype, "mayJoin", open, () =>
      finds(t, "calm", /passed a waiter that has waited for|has been free for/, undefined, 5_000),
    );
  },
);

inMatrixSerially(
  "the explorer finds a late grant that counts permits which a renewal has released",
  async (t) => {
    let late: number | undefined;
    const noting = (hear: Acquisition["onLateReply"]): Acquisition["onLateReply"] =>
      function (this: Acquisition, attempt, reply) {
        late = reply.acquired ? reply.count : undefined;
        hear.call(this, attempt, reply);
        late = undefined;
      };
    const trusting = (begin: SharedLease["begin"]): SharedLease["begin"] =>
      function (this: SharedLease, grant) {
        begin.call(this, { ...grant, count: late ?? grant.count });
      };
    await withFault(Acquisition.prototype, "onLateReply", noting, () =>
      withFault(SharedLease.prototype, "begin", trusting, () =>
        explorerFinds(t, "several permits at once", /believe they hold \S+ by \d+ permits/),
      ),
    );
  },
);

inMatrixSerially(
  "the simulation finds a caller that retries in the same tick while each command fails",
  async (t) => {
    const hasty = (onFailure: Acquisition["onFailure"]): Acquisition["onFailure"] =>
      function (this: Acquisition, attempt, error) {
        onFailure.call(this, attempt, error);
        attempt.caller.wake();
      };
    await withFault(Acquisition.prototype, "onFailure", hasty, () => finds(t, "any", /without end/));
  },
);

outsideMatrixSerially("the simulation finds a local queue that serves its last waiter first", async (t) => {
  const overtaking = (join: ExclusiveQueue["join"]): ExclusiveQueue["join"] =>
    function (this: ExclusiveQueue, waiter) {
      const { first } = this;
      if (first === undefined) return join.call(this, waiter);
      this.first = waiter;
      join.call(this, first);
    };
  await withFault(ExclusiveQueue.prototype, "join", overtaking, () => finds(t, "calm", /overtook/));
});

outsideMatrixSerially("the simulation finds a local queue that does not wake its first waiter", async (t) => {
  await withFault(
    Wait.prototype,
    "wake",
    () => () => {},
    () => finds(t, "calm", /has been free for .* while .* waits|it took/),
  );
});

outsideMatrixSerially("the simulation finds a lock that does not report its loss", async (t) => {
  await withFault(
    Lock.prototype,
    "onLost",
    () => () => {},
    () => finds(t, "freezing", /lost its lock .* ms ago, without a signal/),
  );
});

outsideMatrixSerially("the simulation and the explorer find a release that hides a loss", async (t) => {
  const hiding = (release: Lock["release"]): Lock["release"] =>
    async function (this: Lock) {
      await release.call(this).catch(() => {});
    };
  await withFault(Lock.prototype, "release", hiding, async () => {
    await finds(t, "freezing", /did not learn that it was not alone/);
    await explorerFinds(t, "two processes", /did not learn that it was not alone/);
  });
});

outsideMatrixSerially("the simulation finds a process that keeps a key to itself", async (t) => {
  await withFault(
    HandOffTurn.prototype,
    "mayContinue",
    () => () => true,
    () => finds(t, "calm", /let in \d+ on one grant|handed off .* ms after its first holder got it/),
  );
});

outsideMatrixSerially("the simulation finds a caller that waits longer than its budget", async (t) => {
  const patient = new WeakSet<Wait>();
  const patiently = (original: Wait["try"]) =>
    function (this: Wait, signal: AbortSignal | undefined): Promise<boolean> {
      if (!patient.has(this)) Object.assign(this, { budgetEndsAt: this.budgetEndsAt + 600 });
      patient.add(this);
      return original.call(this, signal);
    };
  await withFault(Wait.prototype, "try", patiently, () =>
    finds(t, "lossy", /(gave up|entered) after .* ms of/),
  );
});

/** Replaces exports of a module for the time of the test. Other modules look them up at each call. */
async function withExports<Module extends object>(
  module: Module,
  faults: Partial<Module>,
  look: () => Promise<void>,
): Promise<void> {
  const originals = { ...module };
  Object.assign(module, faults);
  try {
    await look();
  } finally {
    Object.assign(module, originals);
  }
}

/** Timers, ticks, and handlers run in the context of the code that armed them. */
const LEAKING: Partial<typeof rootContext> = {
  inRoot: (callback) => callback(),
  rooted: (callback) => callback,
  runInNextTick: (callback) => process.nextTick(callback),
  runInPromiseJob: (job) => queueMicrotask(job),
};

/** Abort listeners run in the context of the code that aborts. */
const LEAKING_SIGNALS = {
  Aborter: class extends AbortController {} as unknown as typeof aborter.Aborter,
};

outsideMatrixSerially(
  "the simulation and the explorer find a shared timer that runs in one caller's context",
  async (t) => {
    const what = /(a command|a log line|lockweave:\S+) is in the context of/;
    await withExports(rootContext, LEAKING, async () => {
      await finds(t, "calm", what);
      await explorerFinds(t, "two processes", what);
      await explorerFinds(t, "a quorum of three", what);
    });
  },
);

outsideMatrixSerially(
  "the simulation finds an abort listener in the context of the caller that found the loss",
  async (t) => {
    const what = /an abort listener of call \d+ is in the context of/;
    await withExports(aborter, LEAKING_SIGNALS, () => finds(t, "lossy", what));
  },
);

inMatrixSerially(
  "the simulation finds an abort listener that counts as part of another caller's body",
  async (t) => {
    await withExports(contexts.watch, { isOn: false }, () =>
      withExports(rootContext, LEAKING, () =>
        withExports(aborter, LEAKING_SIGNALS, () =>
          // The listener enters while the body runs, or is refused at once because the lock of that body is lost or shared.
          finds(t, "any", /entered during the body of|gave up after 0 ms/),
        ),
      ),
    );
  },
);

// ---- faults of a quorum ---------------------------------------------------------------------------------

outsideMatrixSerially("the explorer finds a quorum that asks only its coordinator", async (t) => {
  await withFault(
    Election.prototype,
    "askOthers",
    () => async () => ({ acquired: true }),
    () => explorerFinds(t, "a quorum of three", /trusts its hold for .*, and 1 masters hold it/),
  );
});

inMatrixSerially("the explorer finds a quorum that counts an unanswered renewal as a renewal", async (t) => {
  const optimistic = (renew: Renewal["renew"]): Renewal["renew"] =>
    async function (this: Renewal, requests, timeoutMs) {
      const replies = await renew.call(this, requests, timeoutMs);
      return replies.map((reply) => (reply instanceof Error ? { renewed: true } : reply));
    };
  await withFault(Renewal.prototype, "renew", optimistic, () =>
    explorerFinds(t, "renewals by a quorum of three", /trusts its hold for .*, and \d masters hold it/),
  );
});
