import { setImmediate as turnOfTheEventLoop, setTimeout as pause } from "node:timers/promises";
import { now } from "./clock";
import type { Contestant } from "./contestants/contestant";

/** The loop of each caller in one process: acquire the lock, run a section under it, pause, and repeat. */
export interface Loop {
  /** The start on the clock that all processes share. */
  readonly startAt: number;
  /** With `"one"`, all callers use `key`. With `"distinct"`, each section has its own key that begins with `key`. */
  readonly keys: "one" | "distinct";
  readonly key: string;
  /** Whether callers skip waiting for the reply to the release. */
  readonly leaves?: boolean;
  /** The number of callers for each client of the process. */
  readonly callers: number;
  readonly sectionMs: number;
  readonly pauseMs: number;
  /** The time before the measurement starts. Meanwhile, code is compiled and the crowd forms. */
  readonly settlingMs?: number;
  /** The loop ends after this time, even if callers still wait. They do not stop, so the process must be killed, too. */
  readonly durationMs?: number;
  /** Whether the loop also waits for these callers, so that another loop can follow in the same process. */
  readonly waitsForCallers?: boolean;
  /** The number of sections after which each caller stops. */
  readonly sectionsEach?: number;
}

export interface LoopRecord {
  /** Three times for each section: when the caller requested the lock, entered the section, and left it. */
  readonly sections: Float64Array;
  /** The times at which the callers that still waited at the end requested the lock. */
  readonly waiting: readonly number[];
  /** How often a caller found another one inside. Each caller leaves a token inside, and checks that it is still there at the end. */
  readonly overlaps: number;
  /** CPU time after the settling. */
  readonly cpuMs: number;
}

/** The part of a contestant that a loop needs. */
type Runner = Pick<Contestant, "run" | "runWithoutWaiting">;

export async function runLoop(clients: readonly Runner[], loop: Loop): Promise<LoopRecord> {
  const {
    keys,
    key,
    sectionMs,
    pauseMs,
    settlingMs = 0,
    durationMs = Infinity,
    sectionsEach = Infinity,
    leaves = false,
    waitsForCallers = false,
  } = loop;
  const sections: number[] = [];
  const waiting = new Map<number, number>();
  const endAt = loop.startAt + durationMs;
  let inside: object | undefined;
  let overlaps = 0;

  const call = async (client: Runner, caller: number): Promise<void> => {
    for (let turn = 0; turn < sectionsEach && now() < endAt; turn += 1) {
      const requestedAt = now();
      waiting.set(caller, requestedAt);
      const run = leaves ? client.runWithoutWaiting : client.run;
      await run?.call(client, keys === "one" ? key : `${key}:${caller}:${turn}`, async () => {
        const enteredAt = now();
        waiting.delete(caller);
        const token = {};
        if (keys === "one" && inside !== undefined) overlaps += 1;
        inside = token;
        await work(sectionMs);
        if (keys === "one" && inside !== token) overlaps += 1;
        inside = undefined;
        sections.push(requestedAt, enteredAt, now());
      });
      if (pauseMs > 0) await pause(pauseMs);
    }
  };

  await pause(Math.max(loop.startAt - now(), 0));
  let settled = process.cpuUsage();
  setTimeout(() => (settled = process.cpuUsage()), settlingMs);
  const callers = clients.flatMap((client, index) =>
    Array.from({ length: loop.callers }, (_, nth) => call(client, index * loop.callers + nth)),
  );
  const done = Promise.all(callers);
  await (durationMs === Infinity ? done : Promise.race([done, pause(endAt - now())]));
  const { user, system } = process.cpuUsage(settled);
  const stillWaiting = [...waiting.values()];
  if (waitsForCallers) await done;
  return {
    sections: Float64Array.from(sections),
    waiting: stillWaiting,
    overlaps,
    cpuMs: (user + system) / 1_000,
  };
}

/**
 * Takes exactly this long without blocking the process, by yielding to the event loop until the time is over. A timer would round to
 * milliseconds. A busy loop would keep this process, but no other one, from requesting the lock. A section of no time still yields once.
 */
async function work(ms: number): Promise<void> {
  if (ms === 0) return await Promise.resolve();
  const end = now() + ms;
  while (now() < end) await turnOfTheEventLoop();
}
