import test from "ava";
import type { Redis } from "ioredis";
import { UNLIMITED } from "../../../runtime/base/limits";
import { CLAIM_TIME_MS, type WholeStore } from "../../../runtime/stores/port";
import { isClosed, isReserved } from "../../../runtime/stores/value";
import { startRedis, type RedisServer } from "../../support/redis-server";
import { inMatrixSerially, outsideMatrixSerially } from "../../support/suites";
import { timedProcess, withoutTime, type TimedProcess } from "../timed-redis";
import { written } from "./choices";
import { explore } from "./explore";
import { withShortIds } from "./names";
import { PLANS } from "./plans";
import type { Executed, Command } from "./wire";

// The explorer's server is the memory store. Here a real Redis executes a sample of its schedules: each command by itself, in
// the order of the schedule, through the store of its process. The replies must be those of the schedule. The sample has only
// schedules in which nothing expires, because no time passes on the server here.

const SAMPLE = 10;
/** The sample takes one in this many schedules. */
const EVERY = 3;
/** Ends the search in plans with few brief schedules, whose sample is smaller. */
const MOST_SEEN = 600;
const TIMEOUT_MS = 60_000;

let server: RedisServer;
let client: Redis;
const processes: TimedProcess[] = [];

test.before(async () => {
  server = await startRedis();
  client = server.client();
  for (let n = 0; n < 3; n += 1) {
    processes.push(await timedProcess(withoutTime(client, "*"), `explorer${n}`));
  }
});

test.after.always(async () => {
  for (const process of processes) await process.close();
  await server.stop();
});

/** A few plans with different commands. */
const IN_NPM_TEST = new Set(["renewals", "permits", "a revoked lock"]);

for (const plan of PLANS.filter(({ masters }) => masters === undefined)) {
  const inSuite = IN_NPM_TEST.has(plan.name) ? outsideMatrixSerially : inMatrixSerially;
  inSuite(`a real Redis replies like the explorer's server to schedules of ${plan.name}`, async (t) => {
    const sample: { readonly name: string; readonly carriedOut: readonly Executed[] }[] = [];
    let seen = 0;
    await explore(plan, {
      deviations: 2,
      isEnough: () => sample.length === SAMPLE || seen === MOST_SEEN,
      onSeen({ carriedOut }, choices) {
        seen += 1;
        if (seen % EVERY === 0 && isBrief(carriedOut)) sample.push({ name: written(choices), carriedOut });
      },
    });
    t.true(sample.length > SAMPLE / 4);
    let commands = 0;
    for (const [index, { name, carriedOut }] of sample.entries()) {
      const key = `LOCK_${plan.name.replaceAll(" ", "_")}_${index}`;
      for (const { process, command, reply } of carriedOut) {
        const really = await carryOut(process, renamed(command, key), key);
        t.deepEqual(comparable(really), comparable(reply), `--plan "${plan.name}" --replay ${name}`);
        commands += 1;
      }
    }
    t.log(`${sample.length} schedules, ${commands} commands`);
  });
}

/** Returns whether the schedule ends before anything expires. */
function isBrief(carriedOut: readonly Executed[]): boolean {
  const [first, last] = [carriedOut[0], carriedOut.at(-1)];
  return first !== undefined && last !== undefined && last.at - first.at < SHORTEST_LOCK_MS;
}

/** The shortest lock time of any plan, and no longer than a claim lasts. */
const SHORTEST_LOCK_MS = Math.min(290, CLAIM_TIME_MS);

async function carryOut(process: number, command: Command, key: string): Promise<unknown> {
  if (command.name === "lose everything") {
    const keys = await client.keys(`*${key}*`);
    if (keys.length > 0) await client.del(keys);
    return undefined;
  }
  if (command.name === "revoke") {
    const store = processes[0]?.store;
    const [requestId] = (await store?.peek([command.key], TIMEOUT_MS)) ?? [];
    const isHold = typeof requestId === "string" && !isReserved(requestId) && !isClosed(requestId);
    if (isHold) await store?.admin.revoke({ key: command.key, requestId }, TIMEOUT_MS);
    return undefined;
  }
  const store = processes[process - 1]?.store;
  if (store === undefined) throw new Error(`Expected process ${process} to have a store`);
  return await sent(store, command);
}

function sent(
  store: WholeStore,
  command: Exclude<Command, { name: "lose everything" | "revoke" }>,
): Promise<unknown> {
  switch (command.name) {
    case "acquire":
      return store.acquire(command.request, TIMEOUT_MS);
    case "enqueue":
      return store.queue.enqueue(command.request, TIMEOUT_MS);
    case "renew":
      return store.renew(command.requests, TIMEOUT_MS);
    case "release":
      return store.release(command.request, TIMEOUT_MS);
    case "peek":
      return store.peek(command.keys, TIMEOUT_MS);
    case "dequeue":
      return store.queue.dequeue(command.key, command.ticket, TIMEOUT_MS);
    default:
      return store.queue.releaseAndEnqueue(command.held, command.request, TIMEOUT_MS);
  }
}

/** Returns the same command for another key. */
function renamed(command: Command, key: string): Command {
  const text = JSON.stringify(command, (_, value: unknown) => (value === UNLIMITED ? "unlimited" : value));
  return JSON.parse(text.replaceAll(/LOCK_(one|two)/g, `${key}_$1`), (_, value: unknown) =>
    value === "unlimited" ? UNLIMITED : value,
  ) as Command;
}

/** Returns what does not depend on how much time has passed. */
function comparable(reply: unknown): string {
  const text = JSON.stringify(reply, (name, value: unknown) => {
    if (name === "freeInMs") return undefined;
    return name === "fencingToken" ? "a token" : value;
  });
  return withShortIds(text ?? "nothing");
}
