import type { LockOptions } from "../../../runtime/lock/settings";
import type { Plan } from "./story";

const PATIENT = { lockTime: "2s", retryTimes: 3, waitTime: "500ms" } as const satisfies LockOptions;

const READ = { ...PATIENT, mode: "read" } as const satisfies LockOptions;

const TWO = { ...PATIENT, permits: 2 } as const satisfies LockOptions;

const OPEN = { ...PATIENT, release: "background" } as const satisfies LockOptions;

const SHORT = { ...PATIENT, lockTime: "300ms" } as const satisfies LockOptions;

function call(process: number, atMs: number, how: LockOptions = PATIENT, workMs = 5): Plan["calls"][number] {
  return { process, atMs, workMs, how };
}

/** The small worlds that are explored. */
export const PLANS: readonly Plan[] = [
  { name: "two processes", calls: [call(1, 0), call(1, 0), call(2, 0), call(2, 0)] },
  {
    name: "different locks",
    calls: [
      call(1, 0, { ...PATIENT, lockTime: "1s", fencing: true }),
      call(1, 0, { ...PATIENT, lockTime: "3s" }),
      call(2, 0, { ...PATIENT, fencing: true }),
      call(2, 0, { ...PATIENT, lockTime: "1s", watchdog: false }, 0),
    ],
  },
  {
    name: "renewals",
    calls: [
      call(1, 0, { ...PATIENT, lockTime: "300ms" }, 150),
      call(1, 60),
      call(2, 0, { ...PATIENT, lockTime: "300ms" }, 0),
      call(2, 120, PATIENT, 0),
    ],
  },
  {
    name: "try-locks",
    calls: [
      call(1, 0, { ...PATIENT, retryTimes: 0 }),
      call(1, 0),
      call(2, 0, { ...PATIENT, retryTimes: 0, onFailure: "skip" }),
      call(2, 0),
    ],
  },
  // A message that is held back once arrives just after the other process has ended its hold.
  { name: "a hand-off", calls: [call(1, 0), call(1, 0), call(2, 0, PATIENT, 4)] },
  { name: "readers", calls: [call(1, 0, READ), call(2, 0), call(2, 0, READ), call(1, 0, READ)] },
  { name: "permits", calls: [call(1, 0, TWO), call(2, 0, TWO), call(1, 0, TWO), call(2, 0)] },
  // The holder makes one process wait with two callers, so that its next command asks for two permits at once.
  {
    name: "several permits at once",
    calls: [call(2, 0), call(1, 0, TWO), call(1, 0, TWO), call(2, 150, TWO)],
  },
  {
    name: "several keys",
    calls: [
      { ...call(1, 0), keys: ["LOCK_one", "LOCK_two"] },
      { ...call(2, 0), keys: ["LOCK_two", "LOCK_one"] },
      call(2, 0),
    ],
  },
  {
    name: "releases in the background",
    calls: [call(1, 0, OPEN), call(1, 0, OPEN), call(2, 0, OPEN), call(2, 0)],
  },
  {
    name: "a revoked lock",
    mayBeRevoked: true,
    calls: [call(1, 0), call(1, 0), call(2, 0, SHORT), call(2, 0)],
  },
  {
    name: "a process that is stopped",
    mayStop: true,
    calls: [call(1, 0, PATIENT, 30), call(1, 0), call(2, 0)],
  },
  { name: "three processes", calls: [call(1, 0), call(1, 0), call(2, 0), call(3, 0)] },
  { name: "a quorum of three", masters: 3, calls: [call(1, 0), call(2, 0)] },
  {
    name: "renewals by a quorum of three",
    masters: 3,
    calls: [
      call(1, 0, { ...PATIENT, lockTime: "300ms" }, 150),
      call(2, 20, { ...PATIENT, lockTime: "300ms" }),
    ],
  },
  {
    name: "a process that is stopped, of a quorum of three",
    masters: 3,
    mayStop: true,
    calls: [call(1, 0, { ...PATIENT, lockTime: "300ms" }, 150), call(2, 20)],
  },
];

/** @throws if there is no plan with that name */
export function planOf(name: string): Plan {
  const plan = PLANS.find((one) => one.name === name);
  if (plan !== undefined) return plan;
  throw new Error(`Expected one of ${PLANS.map((one) => one.name).join(", ")}, got ${name}`);
}
