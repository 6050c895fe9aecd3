import { setImmediate as turnOfTheEventLoop, setTimeout as pause } from "node:timers/promises";
import { now } from "./clock";
import type { Contestant } from "./contestants/contestant";

/** What the callers of one process do: ask for the lock, run a section under it, pause, and again. */
export interface Loop {
  /** On the clock that all processes share. */
  readonly startAt: number;
  /** `"one"`: all want `key`. `"distinct"`: each section has a key of its own that begins with `key`. */
  readonly keys: "one" | "distinct";
  readonly key: string;
  /** Nobody waits for the reply to a release. */
  readonly leaves?: boolean;
  /** For each client of the process. */
  readonly callers: number;
  readonly sectionMs: number;
  readonly pauseMs: number;
  /** What happens before is not measured: code gets compiled, and the crowd forms. */
  readonly settlingMs?: number;
  /** The loop ends after so long, whoever still waits. (Its callers do not: end the process, too.) */
  readonly durationMs?: number;
  /** Callers ask no more after so many sections each. */
  readonly sectionsEach?: number;
}

export interface LoopRecord {
  /** Three numbers a section: asked at, entered at, left at. */
  readonly sections: Float64Array;
  /** When those asked who still waited at the end. */
  readonly waiting: readonly number[];
  /** How often a caller found somebody else inside, by a token that it left there and looked for again. */
  readonly overlaps: number;
  /** After the settling. */
  readonly cpuMs: number;
}

export async function runLoop(clients: readonly Contestant[], loop: Loop): Promise<LoopRecord> {
  const {
    keys,
    key,
    sectionMs,
    pauseMs,
    settlingMs = 0,
    durationMs = Infinity,
    sectionsEach = Infinity,
    leaves = false,
  } = loop;
  const sections: number[] = [];
  const waiting = new Map<number, number>();
  const endAt = loop.startAt + durationMs;
  let inside: object | undefined;
  let overlaps = 0;

  const call = async (client: Contestant, caller: number): Promise<void> => {
    for (let turn = 0; turn < sectionsEach && now() < endAt; turn += 1) {
      const askedAt = now();
      waiting.set(caller, askedAt);
      const run = leaves ? client.runAndLeave : client.run;
      await run?.call(client, keys === "one" ? key : `${key}:${caller}:${turn}`, async () => {
        const enteredAt = now();
        waiting.delete(caller);
        const token = {};
        if (keys === "one" && inside !== undefined) overlaps += 1;
        inside = token;
        await work(sectionMs);
        if (keys === "one" && inside !== token) overlaps += 1;
        inside = undefined;
        sections.push(askedAt, enteredAt, now());
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
  return {
    sections: Float64Array.from(sections),
    waiting: [...waiting.values()],
    overlaps,
    cpuMs: (user + system) / 1_000,
  };
}

/**
 * Takes exactly that long, and leaves the process able to do other things meanwhile: it goes round the event
 * loop until the time is over. (A timer rounds to milliseconds, and a busy loop would keep this process, alone
 * of all, from asking for the lock.) A section of no time still gives way once.
 */
async function work(ms: number): Promise<void> {
  if (ms === 0) return await Promise.resolve();
  const end = now() + ms;
  while (now() < end) await turnOfTheEventLoop();
}
