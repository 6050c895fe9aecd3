import { MOST_TOLD, STANDS_FOR_MS, type AnnouncedLock } from "../../runtime/diagnostics/announced";
import { processName } from "../../runtime/stores/redis/keys";
import type { Deployment } from "./deployment";
import type { Process, Announcement } from "./snapshot";
import { shortened } from "./shortened";

/** The announcement of a process, and when it was made, on the local clock. */
interface ProcessRecord {
  readonly process: Process;
  readonly at: number;
  readonly holds: readonly AnnouncedLock[];
  readonly waits: readonly AnnouncedLock[];
}

const READ_EVERY_MS = 5_000;
/** The time before the second read. The first announcement may not have arrived yet. */
const READ_AGAIN_AFTER_MS = 1_000;
/** The most processes whose announcements one snapshot reads. */
const MOST_READ = 500;
const READ_AT_ONCE = 20;
/** A longer announcement does not come from Lockweave, and is ignored. */
const MOST_BYTES = 300_000;
const LONGEST_KEY = 1_000;

/** Reads what processes announce about themselves with `configure({ announce: true })`. */
export class Processes {
  readonly #prefix: string;
  readonly #records = new Map<string, ProcessRecord>();
  readonly #readAgainAt = new Map<string, number>();

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /**
   * Reads the announcements of these processes. Ignores one that is missing, invalid, too long, or forbidden to this user.
   *
   * @param numbers the process numbers, the most important first
   * @returns the number of commands
   */
  async read(deployment: Deployment, numbers: Iterable<string>): Promise<number> {
    const now = performance.now();
    for (const [number, at] of this.#readAgainAt) if (now > at + STANDS_FOR_MS) this.#forget(number);
    const due = [...new Set(numbers)]
      .filter((number) => now >= (this.#readAgainAt.get(number) ?? 0))
      .slice(0, MOST_READ);
    for (let from = 0; from < due.length; from += READ_AT_ONCE)
      await Promise.all(
        due.slice(from, from + READ_AT_ONCE).map((number) => this.#readOne(deployment, number, now)),
      );
    return 2 * due.length;
  }

  async #readOne(deployment: Deployment, number: string, now: number): Promise<void> {
    const isKnown = this.#records.has(number);
    this.#readAgainAt.set(number, now + (isKnown ? READ_EVERY_MS : READ_AGAIN_AFTER_MS));
    try {
      const { value, leftMs } = await deployment.read(this.#prefix + processName(number), MOST_BYTES);
      if (value !== undefined && Buffer.byteLength(value) < MOST_BYTES)
        this.#records.set(number, parseAnnouncement(number, value, now - (STANDS_FOR_MS - leftMs)));
    } catch {
      // The lock itself was read. A process without an announcement is shown by its number.
    }
  }

  #forget(number: string): void {
    this.#readAgainAt.delete(number);
    this.#records.delete(number);
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

  waits(number: string, key: string, now: number): Announcement {
    const record = this.#records.get(number);
    return record === undefined ? {} : announcementOf(record.waits, key, now - record.at);
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
  return { process, at, holds: locksIn(fields["holds"]), waits: locksIn(fields["waits"]) };
}

function objectIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function locksIn(value: unknown): readonly AnnouncedLock[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, MOST_TOLD).flatMap((one: unknown): AnnouncedLock[] => {
    if (typeof one !== "object" || one === null) return [];
    const { key, site, forMs } = one as Readonly<Record<string, unknown>>;
    if (typeof key !== "string" || key.length > LONGEST_KEY || typeof forMs !== "number" || !(forMs >= 0))
      return [];
    return [typeof site === "string" ? { key, site: shortened(site), forMs } : { key, forMs }];
  });
}
