import { MOST_TOLD, STANDS_FOR_MS, type AnnouncedLock } from "../../../runtime/announced";
import { processName } from "../../../runtime/stores/redis/keys";
import type { Home } from "./home";
import type { Process, Said } from "./look";
import { shortened } from "./shortened";

/** What a process said, and when, by the clock here. */
interface Word {
  readonly process: Process;
  readonly at: number;
  readonly holds: readonly AnnouncedLock[];
  readonly waits: readonly AnnouncedLock[];
}

const ASKED_EVERY_MS = 5_000;

/** What processes say of themselves: see `configure({ announce: true })`. */
export class Processes {
  readonly #prefix: string;
  readonly #words = new Map<string, Word>();
  readonly #askAgainAt = new Map<string, number>();

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** @returns how many commands it took */
  async ask(home: Home, numbers: Iterable<string>): Promise<number> {
    const now = performance.now();
    for (const [number, at] of this.#askAgainAt) if (now > at + STANDS_FOR_MS) this.#forget(number);
    const due = [...new Set(numbers)].filter((number) => now >= (this.#askAgainAt.get(number) ?? 0));
    await Promise.all(
      due.map(async (number) => {
        this.#askAgainAt.set(number, now + ASKED_EVERY_MS);
        const { value, leftMs } = await home.read(this.#prefix + processName(number));
        if (value !== null) this.#words.set(number, wordOf(number, value, now - (STANDS_FOR_MS - leftMs)));
      }),
    );
    return 2 * due.length;
  }

  #forget(number: string): void {
    this.#askAgainAt.delete(number);
    this.#words.delete(number);
  }

  named(number: string): Process {
    return this.#words.get(number)?.process ?? { number };
  }

  /**
   * @param since what was said before, by the clock here, was of an earlier hold
   */
  holds(number: string, key: string, now: number, since: number): Said {
    const word = this.#words.get(number);
    return word === undefined || word.at < since ? {} : saidOf(word.holds, key, now - word.at);
  }

  waits(number: string, key: string, now: number): Said {
    const word = this.#words.get(number);
    return word === undefined ? {} : saidOf(word.waits, key, now - word.at);
  }
}

function saidOf(locks: readonly AnnouncedLock[], key: string, agoMs: number): Said {
  const lock = locks.find((one) => one.key === key);
  if (lock === undefined) return {};
  return { ...(lock.site !== undefined && { site: lock.site }), forMs: lock.forMs + agoMs };
}

/** It may be anybody's text: what is not as it should be is left out. */
function wordOf(number: string, text: string, at: number): Word {
  const said = objectIn(text);
  const { host, pid, version } = said;
  const process = {
    number,
    ...(typeof host === "string" && { host: shortened(host) }),
    ...(Number.isSafeInteger(pid) && { pid: Number(pid) }),
    ...(typeof version === "string" && { version: shortened(version) }),
  };
  return { process, at, holds: locksIn(said["holds"]), waits: locksIn(said["waits"]) };
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
    if (typeof key !== "string" || typeof forMs !== "number" || !(forMs >= 0)) return [];
    return [typeof site === "string" ? { key, site: shortened(site), forMs } : { key, forMs }];
  });
}
