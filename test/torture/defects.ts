import { LockLostError } from "../../runtime/base/errors";
import { Lock } from "../../runtime/lock/lock";
import * as reentrancy from "../../runtime/lock/reentrancy";
import type { WholeStore } from "../../runtime/stores/port";
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
} as const satisfies Record<string, { readonly plant?: () => void; readonly tamper?: Tamper }>;

export type Defect = keyof typeof DEFECTS;

export function isDefect(name: string): name is Defect {
  return name in DEFECTS;
}

export const DEFECT_NAMES = Object.keys(DEFECTS);

/** Plants the defect, and returns the store that the process is to use. */
export function withDefect(defect: Defect | undefined, store: WholeStore): WholeStore {
  const { plant, tamper }: { readonly plant?: () => void; readonly tamper?: Tamper } =
    defect === undefined ? {} : DEFECTS[defect];
  plant?.();
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
  const { runInside, findAround } = reentrancy;
  const leaked = new Set<object>();
  const exported: object = reentrancy;
  Object.assign<object, Pick<typeof reentrancy, "runInside" | "findAround">>(exported, {
    runInside(locks, body) {
      for (const lock of locks) leaked.add(lock);
      return runInside(locks, body);
    },
    findAround<Around extends object>(isWanted: (lock: object, by: Around) => lock is Around, by: Around) {
      const around = findAround(isWanted, by);
      return around ?? [...leaked].find((lock): lock is Around => isWanted(lock, by));
    },
  });
}
