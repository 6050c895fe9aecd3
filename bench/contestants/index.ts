import { connect, type Contestant, type Enter } from "./contestant";
import { enterBefore, enterLockweave } from "./lockweave";
import { enterRaw } from "./raw";
import { enterRedisSemaphore } from "./redis-semaphore";
import { enterRedlock } from "./redlock";
import { enterRedlockUniversal } from "./redlock-universal";

/** The contestants in the order of the reports. All are compared with `raw`. */
export const CONTESTANTS = [
  "raw",
  "lockweave",
  "before",
  "redis-semaphore",
  "redlock",
  "redlock-universal",
] as const;
export type ContestantName = (typeof CONTESTANTS)[number];

const ENTER: Record<ContestantName, Enter> = {
  raw: enterRaw,
  lockweave: enterLockweave,
  before: enterBefore,
  "redis-semaphore": enterRedisSemaphore,
  redlock: enterRedlock,
  "redlock-universal": enterRedlockUniversal,
};

export function isContestant(name: string | undefined): name is ContestantName {
  return CONTESTANTS.some((contestant) => contestant === name);
}

/** Creates a new client of the library, on its own connection. */
export async function enter(name: ContestantName, port: number, lockTimeMs: number): Promise<Contestant> {
  return await ENTER[name](await connect(port), lockTimeMs);
}
