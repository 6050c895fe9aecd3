import type { Entry, History } from "./history";

// The order of waiters, within what docs/guarantees.md promises. Callers with several keys, readers, and callers with permits are left
// out, because they may be overtaken.

/** A turn of a process has at most 63 hand-offs. */
const LONGEST_TURN = 64;
/** A waiter asks the store at least once in this time, so it is in the queue of the store by then. */
const ENQUEUED_AFTER_MS = 1_000;

/** Returns the callers that entered a lock before another caller of their process that had asked for it earlier. */
export function overtakingIn({ name, entries }: History): string[] {
  const queues = new Map<number, string>();
  const asked = new Map<number, number>();
  const lastOf = new Map<string, number>();
  const found: string[] = [];
  for (const entry of entries) {
    if (entry.event === "called" && entry.queue !== undefined) {
      queues.set(entry.call, entry.queue);
      asked.set(entry.call, asked.size);
    }
    if (entry.event !== "entered") continue;
    const { call } = entry;
    const [queue, position] = [queues.get(call), asked.get(call)];
    if (queue === undefined || position === undefined) continue;
    const last = lastOf.get(queue);
    if (last !== undefined && position < (asked.get(last) ?? -1)) {
      found.push(`${name}, call ${last} entered ${queue} before call ${call}, which had asked earlier`);
    } else lastOf.set(queue, call);
  }
  return found;
}

interface Entering {
  readonly at: number;
  readonly process: string;
  readonly key: string;
}

interface Waiting extends Entering {
  readonly call: number;
  readonly until: number;
}

/**
 * Returns the waiters that had to watch how another process entered their lock too often in a row. This holds only without faults. On a key
 * that expires or has a cooldown, nobody notifies the waiters, and the first process that asks gets it. So such a call ends a turn.
 */
export function longTurnsIn(histories: readonly History[]): string[] {
  const enterings = histories.flatMap(enteringsIn).toSorted((one, other) => one.at - other.at);
  return histories.flatMap(waitingIn).flatMap((waiting) => {
    const { process, key, at, until, call } = waiting;
    let [turn, of] = [0, ""];
    for (const entering of enterings) {
      if (entering.key !== key || entering.at < at + ENQUEUED_AFTER_MS || entering.at > until) continue;
      if (entering.process === process) break; // Another caller of its process was in front of it.
      turn = entering.process === of ? turn + 1 : 1;
      of = entering.process;
      if (turn > LONGEST_TURN)
        return [`${process}, call ${call} waited for ${key} while ${of} entered it ${turn} times`];
    }
    return [];
  });
}

/** Entering by a call that no waiter hears the end of counts for no process. */
function enteringsIn({ name, entries }: History): Entering[] {
  const unheard = new Set<number>();
  return entries.flatMap((entry) => {
    if (entry.event === "called" && entry.endsUnheard === true) unheard.add(entry.call);
    if (entry.event !== "entered") return [];
    const process = unheard.has(entry.call) ? `${name}, call ${entry.call}` : name;
    return entry.keys.map((key) => ({ at: entry.at, process, key }));
  });
}

function waitingIn({ name, entries }: History): Waiting[] {
  const open = new Map<number, Entry & { event: "called" }>();
  return entries.flatMap((entry) => {
    if (entry.event === "called") open.set(entry.call, entry);
    if (entry.event !== "entered" && entry.event !== "ended") return [];
    const called = open.get(entry.call);
    open.delete(entry.call);
    if (called?.queue === undefined) return [];
    return [{ call: entry.call, process: name, key: called.queue, at: called.at, until: entry.at }];
  });
}
