import {
  MOST_ANNOUNCED,
  VALID_FOR_MS,
  type AnnouncedLock,
  type AnnouncedWait,
} from "../../runtime/diagnostics/announced";
import type { Deployment } from "./port/deployment";
import type { Process, Announcement } from "./snapshot";
import { shortened } from "./port/shortened";

/** The announcement of a process, and when it was made, on the local clock. */
interface ProcessRecord {
  readonly process: Process;
  readonly at: number;
  readonly holds: readonly AnnouncedLock[];
  readonly waits: readonly AnnouncedWait[];
  readonly unlistedCalls: number;
}

const READ_EVERY_MS = 5_000;
/** The time before the second read. The first announcement may not have arrived yet. */
const READ_AGAIN_AFTER_MS = 1_000;
/** The most processes whose announcements one snapshot reads. */
const MOST_READ = 500;
const LONGEST_KEY = 1_000;
/** A larger number of waiting calls does not come from Lockweave, and is ignored. */
const MOST_CALLS = 100_000_000;

/** Reads what processes announce about themselves with `configure({ announce: true })`. */
export class Processes {
  readonly #deployment: Deployment;
  readonly #records = new Map<string, ProcessRecord>();
  readonly #readAgainAt = new Map<string, number>();

  constructor(deployment: Deployment) {
    this.#deployment = deployment;
  }

  /**
   * Reads the announcements of these processes.
   *
   * @param numbers the process numbers, the most important first
   * @returns the number of commands
   */
  async read(numbers: Iterable<string>): Promise<number> {
    const now = performance.now();
    for (const [number, at] of this.#readAgainAt) if (now > at + VALID_FOR_MS) this.#forget(number);
    const due = [...new Set(numbers)]
      .filter((number) => now >= (this.#readAgainAt.get(number) ?? 0))
      .slice(0, MOST_READ);
    if (due.length === 0) return 0;
    for (const number of due)
      this.#readAgainAt.set(number, now + (this.#records.has(number) ? READ_EVERY_MS : READ_AGAIN_AFTER_MS));
    const { found, commands } = await this.#deployment.announcements(due);
    for (const [number, { about, leftMs }] of found)
      this.#records.set(number, parseAnnouncement(number, about, now - (VALID_FOR_MS - leftMs)));
    return commands;
  }

  #forget(number: string): void {
    this.#readAgainAt.delete(number);
    this.#records.delete(number);
  }

  has(number: string): boolean {
    return this.#records.has(number);
  }

  /** Returns the number of calls of the process that wait for keys that it did not list. */
  unlistedCalls(number: string): number {
    return this.#records.get(number)?.unlistedCalls ?? 0;
  }

  named(number: string): Process {
    return this.#records.get(number)?.process ?? { number };
  }

  /**
   * Returns what the process announced about a lock that it holds.
   *
   * @param since the time from which an announcement counts, on the local clock. An earlier one describes an earlier hold.
   */
  holds(number: string, key: string, now: number, since: number): Announcement {
    const record = this.#records.get(number);
    return record === undefined || record.at < since
      ? {}
      : announcementOf(record.holds, key, now - record.at);
  }

  /** Whether the process announced that it holds the lock. */
  announcesHold(number: string, key: string): boolean {
    return this.#records.get(number)?.holds.some((one) => one.key === key) === true;
  }

  /** Returns what the process announced about its calls that wait for a lock. */
  waits(number: string, key: string, now: number): Announcement & { readonly calls: number } {
    const record = this.#records.get(number);
    const wait = record?.waits.find((one) => one.key === key);
    if (record === undefined || wait === undefined) return { calls: 0 };
    return { ...announcementOf([wait], key, now - record.at), calls: wait.calls };
  }
}

function announcementOf(locks: readonly AnnouncedLock[], key: string, agoMs: number): Announcement {
  const lock = locks.find((one) => one.key === key);
  if (lock === undefined) return {};
  return { ...(lock.site !== undefined && { site: lock.site }), forMs: lock.forMs + agoMs };
}

/** Parses an announcement. Any program may have written it, so invalid fields are dropped. */
function parseAnnouncement(number: string, text: string, at: number): ProcessRecord {
  const fields = objectIn(text);
  const { host, pid, version } = fields;
  const process = {
    number,
    ...(typeof host === "string" && { host: shortened(host) }),
    ...(Number.isSafeInteger(pid) && { pid: Number(pid) }),
    ...(typeof version === "string" && { version: shortened(version) }),
  };
  return {
    process,
    at,
    holds: locksIn(fields["holds"]),
    waits: locksIn(fields["waits"]),
    unlistedCalls: callsIn(fields["unlisted"]) ?? 0,
  };
}

function objectIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Parses a list of locks. A held lock has no number of calls, and gets 1. */
function locksIn(value: unknown): readonly AnnouncedWait[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, MOST_ANNOUNCED).flatMap((one: unknown): AnnouncedWait[] => {
    if (typeof one !== "object" || one === null) return [];
    const { key, site, forMs } = one as Readonly<Record<string, unknown>>;
    if (typeof key !== "string" || key.length > LONGEST_KEY || typeof forMs !== "number" || !(forMs >= 0))
      return [];
    const lock = { key, forMs, calls: callsIn(one) ?? 1 };
    return [typeof site === "string" ? { ...lock, site: shortened(site) } : lock];
  });
}

/** Returns the number of calls in the object. `undefined` if there is no valid number. */
function callsIn(value: unknown): number | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { calls } = value as Readonly<Record<string, unknown>>;
  return Number.isInteger(calls) && Number(calls) > 0 && Number(calls) <= MOST_CALLS
    ? Number(calls)
    : undefined;
}
