import { readFileSync } from "node:fs";
import type { Belief, Violation } from "./beliefs";

// What the checker can miss:
//
// - A belief ends when the caller leaves, when it could have learned of a loss, or at its deadline, whichever is first. It begins after the
//   body has begun. So an overlap shorter than the time between two checks, some milliseconds, may stay unseen.
// - The recorded deadline of a hold has no share for clock drift. So a belief that forgets the drift is seen only if it overlaps another.
// - A lock with several keys does not name its holds, so its checks are not compared with recorded deadlines.
// - A caller that is not inside its body believes nothing. So a wrong grant counts only if its caller enters.
// - A committed guard prolongs the belief until just before COMMIT was sent, and not until the server ended the transaction.
// - Readers and permits have no tokens. A token is compared only with those of beliefs that had ended when its own belief began.
// - A lock with several keys is a belief in each of them, so a caller that holds only some overlaps with the holder of another one.
//
// The servers' wall clocks do not step, and no machine is suspended.

/** One line of JSON in the log of a process. All times are on the shared monotonic clock, in milliseconds. */
export type Entry =
  | {
      readonly event: "called";
      readonly call: number;
      readonly at: number;
      readonly what: string;
      /** The key, if callers of the process get it in the order of their calls. */
      readonly queue?: string | undefined;
      /** Whether no message tells the waiters that its lock has ended. */
      readonly endsUnheard?: boolean | undefined;
    }
  | {
      readonly event: "entered";
      readonly call: number;
      readonly at: number;
      readonly keys: readonly string[];
      readonly room: number | "any";
      readonly fencingToken?: number | undefined;
    }
  /**
   * `assertHeld()` passed after `at` was read, and `remaining()` then returned the time up to `until`, or more. A lock of one key also names
   * its hold in the store.
   */
  | {
      readonly event: "sure";
      readonly call: number;
      readonly at: number;
      readonly until: number;
      readonly hold?: string | undefined;
    }
  /**
   * A reply that granted or renewed the hold was handled before `at`. It is a reason to believe in the hold up to `sureUntil`. No belief after
   * `until` is legal, unless a later reply extends it.
   */
  | {
      readonly event: "proven";
      readonly at: number;
      readonly hold: string;
      readonly sureUntil: number;
      readonly until: number;
    }
  | { readonly event: "left" | "lost"; readonly call: number; readonly at: number }
  /** A transaction that guarded the lock was open when `at` was read, and has committed since. */
  | { readonly event: "committed"; readonly call: number; readonly at: number }
  | { readonly event: "ended"; readonly call: number; readonly at: number; readonly with: string }
  | { readonly event: "complaint"; readonly at: number; readonly text: string };

export interface History {
  readonly name: string;
  readonly entries: readonly Entry[];
  /** Read before the process was killed. */
  readonly killedAt?: number | undefined;
}

/** Reads what a process wrote. A killed process may have left half a line at the end. */
export function readHistory(name: string, file: string, killedAt?: number): History {
  const lines = readFileSync(file, "utf8").split("\n").slice(0, -1);
  return { name, entries: lines.map((line) => JSON.parse(line) as Entry), killedAt };
}

/** Returns what the callers of a process believed, and when. */
export function beliefsIn({ name, entries, killedAt = Infinity }: History): Belief[] {
  const open = new Map<number, Stay>();
  const stays: Stay[] = [];
  for (const entry of entries) {
    if (entry.event === "entered") {
      const stay = new Stay(entry);
      open.set(entry.call, stay);
      stays.push(stay);
    } else if (entry.event === "sure") open.get(entry.call)?.sure(entry);
    else if (entry.event === "proven") for (const stay of stays) stay.prove(entry);
    else if (entry.event === "left") open.get(entry.call)?.leave(entry.at);
    else if (entry.event === "lost") open.get(entry.call)?.lose();
    else if (entry.event === "committed") open.get(entry.call)?.commit(entry.at);
  }
  return stays.flatMap(({ entered, to }) => {
    const { call, keys, at: from, room, fencingToken } = entered;
    return keys.map((key) => ({
      id: `${name}, call ${call}`,
      key,
      from,
      to: Math.min(to, killedAt),
      room: room === "any" ? Infinity : room,
      fencingToken,
    }));
  });
}

/** One caller inside the body of its call. */
class Stay {
  readonly entered: Entry & { event: "entered" };
  #checkedAt: number;
  #deadline: number;
  #endedAt = Infinity;
  #committedAt = -Infinity;
  #hold: string | undefined;

  constructor(entered: Entry & { event: "entered" }) {
    this.entered = entered;
    this.#checkedAt = entered.at;
    this.#deadline = entered.at;
  }

  sure({ at, until, hold }: Entry & { event: "sure" }): void {
    this.#checkedAt = Math.max(this.#checkedAt, at);
    this.#deadline = Math.max(this.#deadline, until);
    this.#hold = hold;
  }

  /** A renewal extends the belief of a caller that holds the key alone. One of several may have an earlier limit of its own. */
  prove({ hold, sureUntil }: Entry & { event: "proven" }): void {
    if (this.#hold === hold && this.entered.room === 1) this.#deadline = Math.max(this.#deadline, sureUntil);
  }

  leave(at: number): void {
    this.#endedAt = Math.min(this.#endedAt, at);
  }

  /** The caller may have learned of the loss at any time since its last check. */
  lose(): void {
    this.#endedAt = Math.min(this.#endedAt, this.#checkedAt);
  }

  /** Nobody else held the lock before the transaction ended, even if the deadline had passed. */
  commit(at: number): void {
    this.#committedAt = Math.max(this.#committedAt, at);
  }

  get to(): number {
    const believedUntil = Math.min(this.#endedAt, Math.max(this.#checkedAt, this.#deadline));
    return Math.max(believedUntil, this.#committedAt);
  }
}

/** Returns each check that passed although the last reply that proved the hold was too long ago, or there was none. */
export function unprovenIn({ name, entries }: History): Violation[] {
  const keys = new Map<number, string>();
  const deadlines = new Map<string, number>();
  return entries.flatMap((entry): Violation[] => {
    if (entry.event === "entered") keys.set(entry.call, entry.keys.join(" and "));
    if (entry.event === "proven") {
      deadlines.set(entry.hold, Math.max(deadlines.get(entry.hold) ?? -Infinity, entry.until));
    }
    if (entry.event !== "sure" || entry.hold === undefined) return [];
    const { call, at, hold } = entry;
    const lateMs = at - (deadlines.get(hold) ?? -Infinity);
    if (lateMs <= 0) return [];
    const key = keys.get(call) ?? "";
    const message = `${key}: ${name}, call ${call} believes that it holds the lock ${lateMs.toFixed(1)} ms after its last proven deadline`;
    return [{ kind: "unproven", at, message, key }];
  });
}

const EXPECTED = new Set([
  "success",
  "skipped",
  "aborted",
  "LOCK_WAIT_TIME_OUT",
  "LOCK_UNREACHABLE",
  "LOCK_LOST",
  "LOCK_CLOSED",
]);

/** Returns the calls that ended with an error that no fault explains, and all unhandled errors. */
export function complaintsIn({ name, entries }: History): string[] {
  return entries.flatMap((entry) => {
    if (entry.event === "complaint") return [`${name} did not handle: ${entry.text}`];
    if (entry.event !== "ended" || EXPECTED.has(entry.with)) return [];
    return [`${name}, call ${entry.call} ended with ${entry.with}`];
  });
}

/** Returns the calls that never ended although their process was not killed. */
export function hungCallsIn({ name, entries, killedAt }: History): string[] {
  if (killedAt !== undefined) return [];
  const open = new Map<number, string>();
  for (const entry of entries) {
    if (entry.event === "called") open.set(entry.call, entry.what);
    else if (entry.event === "ended") open.delete(entry.call);
  }
  return [...open].map(([call, what]) => `${name}, call ${call} never ended: ${what}`);
}
