import { setTimeout as pause } from "node:timers/promises";
import type { LockOptions } from "../../runtime/lock/settings";
import type { WholeStore } from "../../runtime/stores/port";
import { FleetProcess } from "./fleet";
import { monotonicMs } from "./monotonic";
import { retire } from "./retire";
import type { Section } from "./sections";
import { until } from "./until";

const LOCK_TIME = "2s";
const LONGEST_BODY_MS = 10;
export const PROCESSES = 3;

/** Callers in several processes that acquire locks again and again. They share their keys, or each process has its own. */
export class Crowd {
  readonly sections = new Map<string, Section[]>();
  readonly failures = new Map<string, number>();
  readonly #processes: FleetProcess[];
  readonly #ending = new AbortController();
  readonly #callers: Promise<void>[];

  readonly #options: LockOptions;

  /** @param options further options of the locks */
  constructor(open: () => WholeStore, keys: readonly string[], isShared: boolean, options: LockOptions = {}) {
    this.#options = options;
    this.#processes = Array.from({ length: PROCESSES }, () => {
      return new FleetProcess({ store: open(), commandTimeout: "500ms", logger: { warn: () => {} } });
    });
    this.#callers = this.#processes.flatMap((process, nth) =>
      keys.map((key, index) => {
        const name = isShared ? key : `${key}:${nth}`;
        return this.#enterRepeatedly(process, name, `process ${nth}, caller ${index}`);
      }),
    );
  }

  /** Resolves when every lock has been acquired once more. */
  async progresses(): Promise<void> {
    const before = new Map([...this.sections].map(([key, sections]) => [key, sections.length]));
    const unused = (): string[] =>
      [...this.sections].flatMap(([key, { length }]) => (length > (before.get(key) ?? 0) ? [] : [key]));
    await until(() => unused().length === 0).catch(() => {
      const failures = JSON.stringify(Object.fromEntries(this.failures));
      throw new Error(`nobody acquires ${unused().join(", ")} any more; failures so far: ${failures}`);
    });
  }

  /** Resolves when no lock has been acquired for a while. */
  async comesToRest(): Promise<void> {
    const count = (): number => [...this.sections.values()].reduce((sum, { length }) => sum + length, 0);
    await until(async () => {
      const before = count();
      await pause(20 * LONGEST_BODY_MS);
      return count() === before;
    });
  }

  async end(): Promise<void> {
    this.#ending.abort();
    await Promise.all(this.#callers);
    await Promise.all(this.#processes.map(retire));
  }

  async #enterRepeatedly(process: FleetProcess, key: string, name: string): Promise<void> {
    const sections = this.sections.get(key) ?? [];
    this.sections.set(key, sections);
    const options = {
      lockTime: LOCK_TIME,
      waitTime: "1s",
      retryTimes: 20,
      fencing: true,
      ...this.#options,
    } as const;
    while (!this.#ending.signal.aborted) {
      try {
        await process.call(key, options, async (lock) => {
          const enteredAt = monotonicMs();
          let believedUntil = enteredAt + lock.remaining();
          let signaledAt: number | undefined;
          lock.signal.addEventListener("abort", () => (signaledAt = monotonicMs()));
          await pause(Math.random() * LONGEST_BODY_MS);
          const leftAt = monotonicMs();
          believedUntil = Math.min(leftAt, Math.max(believedUntil, leftAt + lock.remaining()));
          const { fencingToken } = lock;
          sections.push({ name, enteredAt, leftAt, believedUntil, signaledAt, fencingToken });
        });
      } catch (error) {
        const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
        this.failures.set(code, (this.failures.get(code) ?? 0) + 1);
        await pause(20);
      }
      await pause(1);
    }
  }
}
