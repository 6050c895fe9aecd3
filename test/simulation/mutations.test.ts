import type { ExecutionContext } from "ava";
import { AcquireCommand } from "../../runtime/commands/acquire";
import * as aborter from "../../runtime/lock/aborter";
import { Lock } from "../../runtime/lock/lock";
import type { Locker } from "../../runtime/lock/locker";
import { Acquisition } from "../../runtime/queue/acquisition";
import { ReleaseRetries } from "../../runtime/queue/release-retries";
import { Lease } from "../../runtime/queue/lease";
import { LocalQueue } from "../../runtime/queue/local-queue";
import { SharedLease } from "../../runtime/queue/shared-lease";
import { HandOffTurn, type Ended } from "../../runtime/queue/hand-off-turn";
import type { Waiter } from "../../runtime/queue/waiter";
import * as rootContext from "../../runtime/root-context";
import {
  FENCING_STRIDE,
  type Store,
  type AcquireReply,
  type AcquireRequest,
} from "../../runtime/stores/port";
import { Election } from "../../runtime/stores/quorum/election";
import { Renewal } from "../../runtime/stores/quorum/renewal";
import { reservedFor } from "../../runtime/stores/value";
import { Beliefs } from "./beliefs";
import * as contexts from "./contexts";
import { explore } from "./explorer/explore";
import { planOf } from "./explorer/plans";
import { SimulatedProcess } from "./process";
import { but, type Tamper } from "./tampering";
import { KINDS } from "./weather";
import { simulate } from "./world";
import { inMatrixSerially, outsideMatrix, outsideMatrixSerially } from "../support/suites";

// What never fails proves nothing. Each test puts one fault into the store or into the runtime, and the
// simulation must find it, or the explorer, by the invariant that is there for it.

const ENOUGH_SEEDS = 1_000;

async function finds(
  t: ExecutionContext,
  weather: string,
  what: RegExp,
  tamper?: Tamper,
  seeds = ENOUGH_SEEDS,
): Promise<void> {
  t.timeout(300_000);
  const others: string[] = [];
  const [first, step] = weather === "any" ? [0, 1] : [KINDS.indexOf(weather), KINDS.length];
  for (let seed = first; seed < seeds; seed += step) {
    const { problems } = await simulate(seed, tamper);
    const found = problems.find((problem) => what.test(problem));
    if (found !== undefined) {
      t.log(`seed ${seed}: ${found}`);
      t.pass();
      return;
    }
    others.push(...problems);
  }
  t.fail(`It was not found. What else was: ${others.slice(0, 3).join("; ") || "nothing"}`);
}

async function explorerFinds(t: ExecutionContext, plan: string, what: RegExp): Promise<void> {
  t.timeout(300_000);
  const { schedules, failures } = await explore(planOf(plan), { deviations: 2 });
  const [failure] = failures;
  if (failure === undefined) return t.fail(`It was not found in ${schedules} schedules`);
  t.log(`schedule ${schedules}: ${failure.problems[0] ?? ""}`);
  t.regex(failure.problems.join("; "), what);
}

const WRONG_BELIEF = /is sure to hold .*, and (nobody has it|it is kept|it has it for|\S+ has it)/;

// ---- faults of the store --------------------------------------------------------------------------------

outsideMatrix("a store that grants a key twice is found out", async (t) => {
  let asked = 0;
  const generous = (store: Store): Store =>
    but(store, {
      async acquire(request, timeoutMs): Promise<AcquireReply> {
        const reply = await store.acquire(request, timeoutMs);
        asked += 1;
        return reply.acquired || asked % 10 > 0 ? reply : { acquired: true };
      },
    });
  await finds(t, "calm", /was granted to .* while .* held it/, generous);
});

outsideMatrix("a store whose keys end before their time is found out", async (t) => {
  const hasty = (store: Store): Store =>
    but(store, {
      acquire: (request, timeoutMs) =>
        store.acquire({ ...request, lockTimeMs: request.lockTimeMs / 2 }, timeoutMs),
      enqueue: (request, timeoutMs) =>
        store.enqueue({ ...request, lockTimeMs: request.lockTimeMs / 2 }, timeoutMs),
    });
  await finds(t, "lossy", /was granted to .* while .* held it|did not learn/, hasty);
});

outsideMatrix("a store whose renewals do not prolong is found out", async (t) => {
  const shortening = (store: Store): Store =>
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

outsideMatrix("a store that forgets a place in the queue is found out", async (t) => {
  const forgetful = (store: Store): Store =>
    but(store, {
      async enqueue(request, timeoutMs): Promise<AcquireReply> {
        const reply = await store.enqueue(request, timeoutMs);
        if (!reply.acquired) await store.dequeue(request.key, request.ticket, timeoutMs);
        return reply;
      },
    });
  await finds(t, "calm", /has been free for .* while .* waits|before .*, which came first/, forgetful);
});

outsideMatrix("a store that frees what is revoked is found out", async (t) => {
  const freeing = (store: Store): Store =>
    but(store, { revoke: async (request, timeoutMs) => (await store.release(request, timeoutMs)).released });
  await finds(t, "sleepy", WRONG_BELIEF, freeing);
});

outsideMatrix("a store that renews what is revoked is found out", async (t) => {
  const forgiving = (store: Store): Store => but(store, { revoke: async () => true });
  await finds(t, "sleepy", /was renewed for .*, which is revoked/, forgiving);
});

outsideMatrix("a store that gives no hints is found out", async (t) => {
  // What the queue gave is taken at the next look, so nothing but time is lost.
  const silent = (store: Store): Store => but(store, { listen: () => () => {} });
  await finds(t, "calm", /has been free for .* while .* waits|it took/, silent);
});

outsideMatrix("a store without a queue is found out", async (t) => {
  const queueless = (store: Store): Store =>
    but(store, { enqueue: (request, timeoutMs) => store.acquire(request, timeoutMs) });
  await finds(t, "calm", /before .*, which came first to the queue|has been free/, queueless);
});

outsideMatrix("a store whose tokens do not outlive it is found out", async (t) => {
  const counting = (store: Store): Store => {
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

outsideMatrix("a store that never forgets who left is found out", async (t) => {
  const clinging = (store: Store): Store => but(store, { dequeue: async () => {} });
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

outsideMatrix("a store that lets a writer in beside readers is found out", async (t) => {
  const blind = grantsBeside(({ permits = 1 }) => permits === 1);
  await finds(t, "calm", /was granted to .* while .* held it/, blind);
});

outsideMatrix("a store that lets in more than there are permits is found out", async (t) => {
  const generous = grantsBeside(({ permits = 1 }) => permits === 2 || permits === 3);
  await finds(t, "calm", /was granted to .* while .* and .* held it/, generous);
});

outsideMatrix("a store that says it has granted more permits than it has is found out", async (t) => {
  const boasting: Tamper = (store) => {
    const boasted = ({ count }: AcquireRequest, reply: AcquireReply): AcquireReply =>
      reply.acquired && count !== undefined ? { ...reply, count } : reply;
    return but(store, {
      acquire: async (request, timeoutMs) => boasted(request, await store.acquire(request, timeoutMs)),
      enqueue: async (request, timeoutMs) => boasted(request, await store.enqueue(request, timeoutMs)),
    });
  };
  await finds(t, "calm", /was granted to .* while .* held it|are sure to hold/, boasting);
});

outsideMatrix("a store that lets readers pass a writer that waits is found out", async (t) => {
  const partial = grantsBeside(({ permits = 1 }) => permits > 3);
  await finds(t, "calm", /before .*, which came first to the queue/, partial);
});

outsideMatrix("a store that does not tell the next of several that there is room is found out", async (t) => {
  const keyOf = new Map<string, string>();
  const silent = (store: Store): Store =>
    but(store, {
      enqueue(request, timeoutMs) {
        keyOf.set(request.ticket, request.key);
        return store.enqueue(request, timeoutMs);
      },
      listen: (listener) =>
        store.listen({
          ...listener,
          onWakeUp(place) {
            const looked = store.peek([keyOf.get(place ?? "") ?? ""], 1);
            void looked.then(([value]) => {
              if (!String(value).startsWith("shared:")) listener.onWakeUp(place);
            });
          },
        }),
    });
  await finds(t, "calm", /has been free for .* while .* waits|it took/, silent);
});

outsideMatrix("a store that ends all with the first of several is found out", async (t) => {
  const hasty = (store: Store): Store =>
    but(store, {
      async release(request, timeoutMs) {
        const { holds } = (await store.inspect?.(request.key, timeoutMs)) ?? { holds: [] };
        const reply = await store.release(request, timeoutMs);
        for (const { value } of reply.released ? holds : [])
          await store.release({ key: request.key, requestId: value }, timeoutMs);
        return reply;
      },
    });
  await finds(t, "calm", /lost its lock in calm weather|did not learn|is sure to hold/, hasty);
});

function lockerOf(waiter: Waiter): Locker {
  return (waiter as unknown as { readonly locker: Locker }).locker;
}

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

outsideMatrixSerially(
  "a lease that counts from its reply, and not from its sending, is found out",
  async (t) => {
    const longer = (prove: Lease["prove"]): Lease["prove"] =>
      function (this: Lease, sentAt, lockTimeMs, trustedSince) {
        prove.call(this, sentAt + 100, lockTimeMs, trustedSince); // What a reply takes, now and then.
      };
    await withFault(Lease.prototype, "prove", longer, () => finds(t, "lossy", WRONG_BELIEF));
  },
);

outsideMatrixSerially("a deadline that knows of no drift is found out", async (t) => {
  const exact = (prove: Lease["prove"]): Lease["prove"] =>
    function (this: Lease, sentAt, lockTimeMs, trustedSince) {
      prove.call(this, sentAt + lockTimeMs * 0.01 + 2, lockTimeMs, trustedSince);
    };
  await withFault(Lease.prototype, "prove", exact, () => finds(t, "lossy", WRONG_BELIEF));
});

outsideMatrixSerially(
  "a check that reads the clock before it looks for a suspension is found out",
  async (t) => {
    const hasty = (): Lock["remaining"] =>
      function (this: Lock) {
        const { clock, queues } = lockerOf(this);
        const now = clock.now();
        return Math.max(this.sureUntil(queues.suspension.trustedSince()) - now, 0);
      };
    await withFault(Lock.prototype, "remaining", hasty, () =>
      explorerFinds(t, "a process that is stopped", WRONG_BELIEF),
    );
  },
);

type Hear = Acquisition["onReply"];

outsideMatrixSerially("an id that is found, and believed without a renewal, is found out", async (t) => {
  const sentBy = new WeakMap<Acquisition, Map<string, AcquireCommand<Waiter>>>();
  const noting = (note: Acquisition["sent"]): Acquisition["sent"] =>
    function (this: Acquisition, one) {
      const sent = sentBy.get(this) ?? new Map<string, AcquireCommand<Waiter>>();
      sentBy.set(this, sent);
      if (one instanceof AcquireCommand) sent.set(one.request.requestId, one);
      note.call(this, one);
    };
  // From the sending of the command that has found it, as if that had taken it.
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
});

outsideMatrixSerially(
  "whoever finds an id of its process, and takes it for its own, is found out",
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

/** All commands of one contender have one id, and its place has it, too. */
async function withInheritedIds(look: () => Promise<void>): Promise<void> {
  const ids = new WeakMap<Acquisition, string>();
  let current: string | undefined;
  const { prototype } = Acquisition;
  const ticketOf = Object.getOwnPropertyDescriptor(prototype, "ticket")?.get;
  const idOf = (contender: Acquisition): string => {
    const id = ids.get(contender) ?? (ticketOf?.call(contender) as unknown);
    if (typeof id !== "string") throw new Error("an acquisition has no ticket");
    ids.set(contender, id);
    return id;
  };
  const within = <Result>(contender: Acquisition, work: () => Result): Result => {
    const before = current;
    current = idOf(contender);
    try {
      return work();
    } finally {
      current = before;
    }
  };
  const inheriting = (next: Lock["nextRequestId"]): Lock["nextRequestId"] =>
    function (this: Lock) {
      return current ?? next.call(this);
    };
  await withFault(Lock.prototype, "nextRequestId", inheriting, () =>
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

outsideMatrixSerially("an id that one command inherits from another is found out", async (t) => {
  const what = /is asked with by two commands/;
  await withInheritedIds(() => finds(t, "disorderly", what));
  await withInheritedIds(() => explorerFinds(t, "two processes", what));
});

inMatrixSerially(
  "the first engine's reservation, which passed for a hold of the id it was for, is found out",
  async (t) => {
    // There an acquire that was deferred, for one who is gone, came after a place of the same id: what the queue had
    // reserved for that id was taken for a grant of the whole lock time.
    const reserved = (hear: Hear): Hear =>
      function (this: Acquisition, attempt, reply) {
        const isOurs = !reply.acquired && reply.holder === reservedFor(attempt.request.requestId);
        hear.call(this, attempt, isOurs ? { acquired: true } : reply);
      };
    // That two commands have one id is not to be what shows it.
    const silent = (): Beliefs["asks"] => () => {};
    await withFault(Beliefs.prototype, "asks", silent, () =>
      withFault(Acquisition.prototype, "onReply", reserved, () =>
        withInheritedIds(() => explorerFinds(t, "a handover", WRONG_BELIEF)),
      ),
    );
  },
);

outsideMatrixSerially(
  "a drop that is sent for an id which may still be found, and believed, is found out",
  async (t) => {
    const hasty = (fail: Acquisition["onFailure"]): Acquisition["onFailure"] =>
      function (this: Acquisition, attempt, error) {
        const { key, requestId, lockTimeMs } = attempt.request;
        fail.call(this, attempt, error);
        lockerOf(attempt.asker).queues.releaseRetries.release({ key, requestId }, lockTimeMs);
      };
    await withFault(Acquisition.prototype, "onFailure", hasty, () => finds(t, "changeable", /was given up/));
  },
);

outsideMatrixSerially(
  "keys that are waited for in the order in which they are named are found out",
  async (t) => {
    type LocksOf = SimulatedProcess["locks"];
    const asNamed = (locksOf: LocksOf): LocksOf =>
      function (this: SimulatedProcess, keys, options) {
        return Object.defineProperty(locksOf.call(this, keys, options), "keys", {
          value: [...new Set(keys)],
        });
      };
    await withFault(SimulatedProcess.prototype, "locks", asNamed, () =>
      finds(t, "calm", /callers wait for ever|were not had|it took/),
    );
  },
);

outsideMatrixSerially("one of several keys that is not given back is found out", async (t) => {
  const keeping = (release: Lock["release"]): Lock["release"] =>
    function (this: Lock) {
      // In calm weather only what was asked for together with others has no patience.
      return this.isPatient || this.remaining() === 0 ? release.call(this) : Promise.resolve();
    };
  await withFault(Lock.prototype, "release", keeping, () =>
    finds(t, "calm", /has been free for .* while .* waits|callers wait for ever|were not had|it took/),
  );
});

outsideMatrixSerially("what comes for one who gave up, and is kept, is found out", async (t) => {
  const keeping = (): ReleaseRetries["release"] => () => {};
  await withFault(ReleaseRetries.prototype, "release", keeping, () =>
    finds(t, "changeable", /has been free for .* while .* waits/),
  );
});

outsideMatrixSerially("a lease that passes to a waiter with a longer lock time is found out", async (t) => {
  interface HandingOff {
    readonly first: Waiter | undefined;
    handOff(lease: Lease, since: number, now: number, ended: Ended): boolean;
  }
  const generous = (handOff: HandingOff["handOff"]): HandingOff["handOff"] =>
    function (this: HandingOff, lease, since, now, ended) {
      const { lockTimeMs } = lease;
      const longerMs = this.first?.lockTimeMs ?? lockTimeMs;
      Object.assign(lease, { lockTimeMs: longerMs, sureUntil: () => Infinity });
      const isHandedOff = handOff.call(this, lease, since, now, ended);
      Reflect.deleteProperty(lease, "sureUntil");
      Object.assign(lease, { lockTimeMs });
      return isHandedOff;
    };
  const prototype = LocalQueue.prototype as unknown as HandingOff;
  await withFault(prototype, "handOff", generous, () => finds(t, "calm", /is let in for .* ms of/));
});

outsideMatrixSerially(
  "a hold that readers join past a writer that waits elsewhere is found out",
  async (t) => {
    const open = (): SharedLease["mayJoin"] =>
      function (this: SharedLease) {
        return this.hasRoom;
      };
    await withFault(SharedLease.prototype, "mayJoin", open, () =>
      finds(t, "calm", /passed one who has waited for|has been free for/, undefined, 5_000),
    );
  },
);

inMatrixSerially(
  "a late grant that counts permits which a renewal has given back is found out",
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
        explorerFinds(t, "several permits at once", /are sure to hold \S+ by \d+ permits/),
      ),
    );
  },
);

outsideMatrixSerially(
  "a caller that asks again in the same tick, while each command fails, is found out",
  async (t) => {
    const hasty = (onFailure: Acquisition["onFailure"]): Acquisition["onFailure"] =>
      function (this: Acquisition, attempt, error) {
        onFailure.call(this, attempt, error);
        attempt.asker.wake();
      };
    await withFault(Acquisition.prototype, "onFailure", hasty, () => finds(t, "any", /without end/));
  },
);

outsideMatrixSerially("a queue that lets the last one in first is found out", async (t) => {
  const overtaking = (join: LocalQueue["join"]): LocalQueue["join"] =>
    function (this: LocalQueue, waiter) {
      const { first } = this;
      if (first === undefined) return join.call(this, waiter);
      this.first = waiter;
      join.call(this, first);
    };
  await withFault(LocalQueue.prototype, "join", overtaking, () => finds(t, "calm", /overtook/));
});

outsideMatrixSerially("a queue that forgets to wake its first is found out", async (t) => {
  await withFault(
    Lock.prototype,
    "wake",
    () => () => {},
    () => finds(t, "calm", /has been free for .* while .* waits|it took/),
  );
});

outsideMatrixSerially("a lock that does not tell that it was lost is found out", async (t) => {
  await withFault(
    Lock.prototype,
    "onLost",
    () => () => {},
    () => finds(t, "freezing", /lost its lock .* ms ago, without a signal/),
  );
});

outsideMatrixSerially("a release that hides that the lock was lost is found out", async (t) => {
  const hiding = (release: Lock["release"]): Lock["release"] =>
    async function (this: Lock) {
      await release.call(this).catch(() => {});
    };
  await withFault(Lock.prototype, "release", hiding, async () => {
    await finds(t, "freezing", /did not learn that it was not alone/);
    await explorerFinds(t, "two processes", /did not learn that it was not alone/);
  });
});

outsideMatrixSerially("a process that keeps a key to itself is found out", async (t) => {
  await withFault(
    HandOffTurn.prototype,
    "mayGoOn",
    () => () => true,
    () => finds(t, "calm", /let in \d+ on one grant|handed .* on .* ms after the first had it/),
  );
});

outsideMatrixSerially("a caller that is kept longer than its budget is found out", async (t) => {
  const budget = Object.getOwnPropertyDescriptor(Lock.prototype, "budgetEndsAt");
  t.truthy(budget, "the fault is put into an accessor of this name");
  Object.defineProperty(Lock.prototype, "budgetEndsAt", {
    ...budget,
    get(this: Lock): unknown {
      return Number(budget?.get?.call(this)) + 600;
    },
  });
  try {
    await finds(t, "lossy", /(gave up|entered) after .* ms of/);
  } finally {
    Object.defineProperty(Lock.prototype, "budgetEndsAt", budget ?? {});
  }
});

/** For the time of the test, as `withFault`: what modules look up among another one's exports at each call. */
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

/** Timers, ticks, and handlers run in the context of whoever armed them. */
const LEAKING: Partial<typeof rootContext> = {
  inRoot: (callback) => callback(),
  rooted: (callback) => callback,
  runInNextTick: (callback) => process.nextTick(callback),
  runInPromiseJob: (job) => queueMicrotask(job),
};

/** And abort listeners in that of whoever aborts. */
const LEAKING_SIGNALS = {
  Aborter: class extends AbortController {} as unknown as typeof aborter.Aborter,
};

outsideMatrixSerially("a timer that serves several in the context of one is found out", async (t) => {
  const what = /(a command|a log line|lockweave:\S+) is in the context of/;
  await withExports(rootContext, LEAKING, async () => {
    await finds(t, "calm", what);
    await explorerFinds(t, "two processes", what);
    await explorerFinds(t, "a quorum of three", what);
  });
});

outsideMatrixSerially(
  "an abort listener in the context of whoever found the loss is found out",
  async (t) => {
    const what = /an abort listener of call \d+ is in the context of/;
    await withExports(aborter, LEAKING_SIGNALS, () => finds(t, "lossy", what));
  },
);

inMatrixSerially("an abort listener that passes for a part of another's body is found out", async (t) => {
  await withExports(contexts.watch, { isOn: false }, () =>
    withExports(rootContext, LEAKING, () =>
      withExports(aborter, LEAKING_SIGNALS, () =>
        // It enters beside the body, or is refused at once because that body's lock is lost or shared.
        finds(t, "any", /entered beside the body of|gave up after 0 ms/),
      ),
    ),
  );
});

// ---- faults of a quorum ---------------------------------------------------------------------------------

outsideMatrixSerially("a quorum that asks nobody but the gate is found out", async (t) => {
  await withFault(
    Election.prototype,
    "askOthers",
    () => async () => ({ acquired: true }),
    () => explorerFinds(t, "a quorum of three", /is sure for .*, and 1 masters have it/),
  );
});

outsideMatrixSerially("a quorum that takes a renewal without an answer for one is found out", async (t) => {
  const optimistic = (renew: Renewal["renew"]): Renewal["renew"] =>
    async function (this: Renewal, requests, timeoutMs) {
      const replies = await renew.call(this, requests, timeoutMs);
      return replies.map((reply) => (reply instanceof Error ? { renewed: true } : reply));
    };
  await withFault(Renewal.prototype, "renew", optimistic, () =>
    explorerFinds(t, "renewals by a quorum of three", /is sure for .*, and \d masters have it/),
  );
});
