import test from "ava";
import * as fc from "fast-check";
import type { Redis } from "ioredis";
import { memoryStore } from "../../runtime/stores/memory";
import { startRedis, type RedisServer } from "../support/redis-server";
import { VirtualClock } from "../support/virtual-clock";
import { but, type Tamper } from "./tampering";
import { flat } from "../support/flat-store";
import {
  compare,
  histories,
  keysOf,
  PROCESSES,
  HistoryPlayer,
  TICK_MS,
  TIMEOUT_MS,
  type Step,
  type Subject,
} from "./history";
import { passInRedis, stepClockInRedis, timedProcess, type TimedProcess } from "./timed-redis";
import { isMatrix } from "../support/suites";

// The simulation runs over the memory store. Here random histories show that Redis does the same, step by step: its replies,
// its wake-ups, and what is left. A history with a difference is printed. To run it again:
//   SEED=123 npx ava test/simulation/differential.test.ts

const HISTORIES = isMatrix ? 300 : 100;
/** The number of attempts for a history in which the server's own time mattered. */
const ATTEMPTS = 30;
const SEED = Number(process.env["SEED"] ?? 1);

let server: RedisServer;
let client: Redis;
let processes: TimedProcess[];

test.before(async () => {
  server = await startRedis();
  client = server.client();
  processes = [];
  for (let n = 0; n < PROCESSES; n += 1) processes.push(await timedProcess(client, `opener${n}`));
});

test.after.always(async () => {
  for (const process of processes) await process.close();
  await server.stop();
});

/** A clock whose wall time can be set. */
class SteppingClock extends VirtualClock {
  steppedMs = 0;

  override epochMicroseconds(): number {
    return super.epochMicroseconds() + this.steppedMs * 1_000;
  }
}

function inMemory(prefix: string, tamper: Tamper): Subject {
  const clock = new SteppingClock();
  const store = tamper(flat(memoryStore({ clock })));
  const wakeUps: string[] = [];
  store.listen({
    onWakeUp(ticket) {
      if (ticket !== undefined) wakeUps.push(ticket);
    },
    onReconnect() {},
    onWarning() {},
  });
  return {
    name: "the memory store",
    stores: Array.from({ length: PROCESSES }, () => store),
    async pass(ms) {
      clock.freeze(ms);
      // Removes what has expired, as Redis does, so that a clock that is set back does not restore it.
      for (const key of keysOf(prefix)) await store.dequeue(key, "nobody's", TIMEOUT_MS);
    },
    stepClock: async (ms) => void (clock.steppedMs += ms),
    forgetScripts: async () => {},
    wakeUps: async () => wakeUps.splice(0),
  };
}

function inRedis(prefix: string): Subject {
  return {
    name: "Redis",
    stores: processes.map(({ store }) => store),
    pass: (ms) => passInRedis(client, `*${prefix}*`, ms),
    stepClock: (ms) => stepClockInRedis(client, `*${prefix}*`, ms),
    forgetScripts: async () => void (await client.script("FLUSH")),
    wakeUps: async () => (await Promise.all(processes.map(({ heard }) => heard()))).flat(),
  };
}

let count = 0;

/** Returns the difference, undefined if the two agree, or "slow" if Redis's own time mattered. */
async function difference(steps: readonly Step[], tamper: Tamper): Promise<string | undefined> {
  const prefix = `LOCK_history${(count += 1)}_`;
  const startedAt = performance.now();
  const memory = new HistoryPlayer(inMemory(prefix, tamper), prefix);
  const redis = new HistoryPlayer(inRedis(prefix), prefix);
  const found = await compare(steps, memory, redis);
  if (found !== undefined) return isSlow(startedAt) ?? found;
  const left = await client.keys(`*${prefix}*`);
  if (left.length > 0) await client.del(left);
  const queues = left.filter((key) => !key.startsWith("lockweave:1:fence:"));
  return queues.length > 0 ? `${JSON.stringify(steps)}\nis left in Redis: ${queues.join(", ")}` : undefined;
}

/** Real time passes in Redis, too, and must not add up to a tick. */
function isSlow(startedAt: number): "slow" | undefined {
  return performance.now() - startedAt > TICK_MS / 2 ? "slow" : undefined;
}

/** Returns the first difference, for the shortest history that shows it. */
async function firstDifference(seed: number, tamper: Tamper = (store) => store): Promise<string | undefined> {
  const property = fc.asyncProperty(histories, async (steps) => {
    let found = await difference(steps, tamper);
    for (let attempt = 1; found === "slow" && attempt < ATTEMPTS; attempt += 1)
      found = await difference(steps, tamper);
    // On a busy machine, some histories cannot be judged.
    if (found !== undefined && found !== "slow") throw new Error(found);
  });
  const { errorInstance } = await fc.check(property, { seed, numRuns: HISTORIES });
  return errorInstance instanceof Error ? errorInstance.message : undefined;
}

test.serial("the memory store and Redis reply the same to every history", async (t) => {
  t.is(await firstDifference(SEED), undefined, `SEED=${SEED}`);
});

const FAULTS: Record<string, Tamper> = {
  "ignores dequeue()": (store) => but(store, { dequeue: async () => {} }),
  "shortens holds": (store) =>
    but(store, {
      renew: async (requests, timeoutMs) =>
        await Promise.all(
          requests.map(async (request) => {
            const [reply = new Error("Expected a reply")] = await store.renew([request], timeoutMs);
            if (reply instanceof Error || !reply.renewed || reply.fencingToken !== undefined) return reply;
            await store.release(request, timeoutMs);
            const again = await store.acquire(request, timeoutMs);
            return again.acquired ? reply : { renewed: false, holder: again.holder };
          }),
        ),
    }),
  "grants its own hold again": (store) =>
    but(store, {
      async acquire(request, timeoutMs) {
        const reply = await store.acquire(request, timeoutMs);
        return !reply.acquired && reply.holder === request.requestId ? { acquired: true } : reply;
      },
    }),
  "releases before it enqueues the next waiter": (store) =>
    but(store, {
      async releaseAndEnqueue(held, request, timeoutMs) {
        const dropped = await store.release(held, timeoutMs);
        if (!dropped.released) return dropped;
        const reply = await store.enqueue(request, timeoutMs);
        return { released: true, next: reply.acquired ? reply : "enqueued" };
      },
    }),
};

for (const [name, fault] of Object.entries(FAULTS)) {
  test.serial(`the comparison with Redis finds a store that ${name}`, async (t) => {
    t.regex((await firstDifference(SEED, fault)) ?? "", /but Redis/);
  });
}
