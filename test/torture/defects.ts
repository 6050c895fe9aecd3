import { setMaxListeners } from "node:events";
import { LockLostError } from "../../runtime/base/errors";
import * as rootContext from "../../runtime/base/root-context";
import { Aborter } from "../../runtime/lock/aborter";
import { Lock } from "../../runtime/lock/lock";
import { MultiLock } from "../../runtime/lock/multi-lock";
import * as reentrancy from "../../runtime/lock/reentrancy";
import { Wait } from "../../runtime/lock/wait";
import type { AcquireReply, AcquireRequest, WholeStore } from "../../runtime/stores/port";
import { but, type Tamper } from "../simulation/tampering";
import { flat, type FlatStore } from "../support/flat-store";

// Deliberate defects, which the torture must find. They are planted when a process starts. The product has no switch for them.

const TIMEOUT_MS = 1_000;

const DEFECTS = {
  /** A release deletes the key, whoever holds it by now. */
  "any-release": { tamper: releasingAnyHold },
  /** `assertHeld()` passes until a loss is reported, even if the deadline of the lock has passed. */
  "no-clock": { plant: ignoreTheClock },
  /** The frame of a reentrant body is seen by all callers of its process. */
  "leaking-frame": { plant: leakFrames },
  /** A guard lets every transaction commit. Only PostgreSQL has guards. */
  "open-guard": { plant: openGuards },
  /**
   * All commands of a caller have one request ID, and a key that holds it counts as granted from the last command on. This was in an early
   * version: see docs/decisions/one-request-id-per-command.md.
   */
  "resent-grant": { plant: inheritRequestIds, tamper: countingWhatIsFound },
  /** Timers and replies run in the async context of the caller that happened to cause them: see docs/decisions/no-inherited-context.md. */
  "borrowed-context": { plant: borrowContexts },
} as const satisfies Record<string, { readonly plant?: () => void; readonly tamper?: Tamper }>;

export type Defect = keyof typeof DEFECTS;

export function isDefect(name: string): name is Defect {
  return name in DEFECTS;
}

export const DEFECT_NAMES = Object.keys(DEFECTS);

/** Plants the defect, and opens the store that the process is to use. */
export function withDefect(defect: Defect | undefined, open: () => WholeStore): WholeStore {
  const { plant, tamper }: { readonly plant?: () => void; readonly tamper?: Tamper } =
    defect === undefined ? {} : DEFECTS[defect];
  plant?.();
  const store = open();
  return tamper?.(flat(store)) ?? store;
}

function releasingAnyHold(store: FlatStore): FlatStore {
  return but(store, {
    async release(request, timeoutMs) {
      const [holder] = await store.peek([request.key], TIMEOUT_MS);
      return await store.release(
        { ...request, ...(typeof holder === "string" && { requestId: holder }) },
        timeoutMs,
      );
    },
  });
}

function ignoreTheClock(): void {
  Lock.prototype.assertHeld = function assertHeld(this: Lock): void {
    if (this.signal.aborted) throw new LockLostError(`${this.key} is lost`);
  };
}

function leakFrames(): void {
  const { runInside, isInsideBody, findAround } = reentrancy;
  const leaked = new Set<object>();
  const exported: object = reentrancy;
  Object.assign<object, Pick<typeof reentrancy, "runInside" | "isInsideBody" | "findAround">>(exported, {
    runInside(locks, body, ...given) {
      for (const lock of locks) leaked.add(lock);
      return runInside(locks, body, ...given);
    },
    isInsideBody: () => isInsideBody() || leaked.size > 0,
    findAround<Around extends object, By>(isWanted: (lock: object, by: By) => lock is Around, by: By) {
      const around = findAround(isWanted, by);
      return around ?? [...leaked].find((lock): lock is Around => isWanted(lock, by));
    },
  });
}

function openGuards(): void {
  const guard: Lock["guard"] = async (run) => void (await run("SELECT 1", []));
  Lock.prototype.guard = guard;
  MultiLock.prototype.guard = guard;
}

function inheritRequestIds(): void {
  const ids = new WeakMap<Wait, string>();
  const { nextRequestId } = Wait.prototype;
  Wait.prototype.nextRequestId = function inherited(this: Wait): string {
    const id = ids.get(this) ?? nextRequestId.call(this);
    ids.set(this, id);
    return id;
  };
}

function countingWhatIsFound(store: FlatStore): FlatStore {
  const granted = ({ requestId }: AcquireRequest, reply: AcquireReply): AcquireReply =>
    !reply.acquired && reply.holder === requestId ? { acquired: true } : reply;
  return but(store, {
    acquire: async (request, timeoutMs) => granted(request, await store.acquire(request, timeoutMs)),
    enqueue: async (request, timeoutMs) => granted(request, await store.enqueue(request, timeoutMs)),
  });
}

function borrowContexts(): void {
  const exported: object = rootContext;
  Object.assign<object, Partial<typeof rootContext>>(exported, {
    inRoot: (callback) => callback(),
    rooted: (callback) => callback,
    runInNextTick: (callback) => process.nextTick(callback),
    runInPromiseJob: (job) => void Promise.resolve().then(job),
  });
  const controllers = new WeakMap<Aborter, AbortController>();
  const controllerOf = (aborter: Aborter): AbortController => {
    const controller = controllers.get(aborter) ?? new AbortController();
    setMaxListeners(0, controller.signal);
    controllers.set(aborter, controller);
    return controller;
  };
  Object.defineProperty(Aborter.prototype, "signal", {
    get(this: Aborter) {
      return controllerOf(this).signal;
    },
  });
  Aborter.prototype.abort = function abort(this: Aborter, reason: unknown): void {
    controllerOf(this).abort(reason);
  };
}
