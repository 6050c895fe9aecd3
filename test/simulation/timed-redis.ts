import type { Redis } from "ioredis";
import { redisStore } from "../../runtime/stores/redis/redis";
import type { WholeStore } from "../../runtime/stores/port";
import { deferred } from "../support/deferred";

const MINUTE_MS = 60_000;

/** Moves the end times of tickets, which a queue stores as negative times of the server's clock. */
const MOVE_ENDS = `
local function move_ends(queue, ms)
  for _, entry in ipairs(redis.call("ZRANGE", queue, 0, -1)) do
    if string.sub(entry, 1, 1) == "-" then
      redis.call("ZINCRBY", queue, -ms * 1000, entry)
    end
  end
end
`;

/** Moves the end times of shared holds, which are times of the server's clock. */
const MOVE_HOLDS = `
local function move_holds(holds, ms)
  local time = redis.call("TIME")
  local now = math.floor(time[1] * 1000 + time[2] / 1000)
  local ends = redis.call("ZRANGEBYSCORE", holds, 1, "+inf", "WITHSCORES")
  for index = 1, #ends, 2 do
    local left = ends[index + 1] - now
    redis.call("ZADD", holds, string.format("%.0f", left <= ms and 1 or ends[index + 1] - ms), ends[index])
  end
end
`;

/**
 * Moves all times by ARGV[1] milliseconds into the past, as if this much time had passed. Removes what has expired by then.
 */
const PASS = `${MOVE_ENDS}${MOVE_HOLDS}
local ms = tonumber(ARGV[1])
for _, key in ipairs(redis.call("KEYS", ARGV[2])) do
  local left = redis.call("PTTL", key)
  if left >= 0 and left <= ms then
    redis.call("DEL", key)
  elseif left >= 0 then
    redis.call("PEXPIRE", key, left - ms)
    if string.find(key, ":holds", 1, true) then
      move_holds(key, ms)
    elseif redis.call("TYPE", key).ok == "zset" then
      move_ends(key, -ms)
    end
  end
end
`;

/**
 * Changes the queues as a clock does that is set forward by ARGV[1] milliseconds. What was written by that clock ends sooner.
 */
const STEP_CLOCK = `${MOVE_ENDS}
local ms = tonumber(ARGV[1])
for _, key in ipairs(redis.call("KEYS", ARGV[2])) do
  if string.find(key, ":queue", 1, true) then
    redis.call("PEXPIRE", key, redis.call("PTTL", key) - ms)
    move_ends(key, -ms)
  end
end
`;

/** The Redis store of one process, with a listener for its inbox. */
export interface TimedProcess {
  readonly store: WholeStore;
  /** Returns the wake-ups that its inbox got since the last call. */
  heard(): Promise<string[]>;
  close(): Promise<void>;
}

/** Lets `ms` pass for the keys that match, without waiting. */
export async function passInRedis(client: Redis, pattern: string, ms: number): Promise<void> {
  await client.eval(PASS, 0, ms, pattern);
}

/**
 * Returns a client whose commands take no time on the server's clock. Each command adds a minute to all times, in the same
 * transaction. Nothing expires unless a minute of real time passes between two commands.
 */
export function withoutTime(client: Redis, pattern: string): Redis {
  const call = async (command: string, ...args: (string | number)[]): Promise<unknown> => {
    const transaction = client.multi().call(command, ...args);
    const [[error, reply] = [new Error("the transaction failed"), undefined]] =
      (await transaction.eval(PASS, 0, -MINUTE_MS, pattern).exec()) ?? [];
    if (error !== null) throw error;
    return reply;
  };
  return Object.create(client, { call: { value: call } }) as Redis;
}

/** Steps the clock by which the tickets in the matching queues end. */
export async function stepClockInRedis(client: Redis, pattern: string, ms: number): Promise<void> {
  await client.eval(STEP_CLOCK, 0, ms, pattern);
}

export async function timedProcess(client: Redis, opener: string): Promise<TimedProcess> {
  const before = await inboxes(client);
  const store = redisStore(client);
  const open = deferred();
  const wakeUps: string[] = [];
  let marker: { readonly id: string; readonly reached: () => void } | undefined;
  const unsubscribe = store.listen({
    onWakeUp(ticket) {
      if (ticket === undefined) open.resolve();
      else if (ticket === marker?.id) marker.reached();
      else wakeUps.push(ticket);
    },
    onReconnect() {},
    onWarning() {},
  });
  // The inbox opens at the first wait.
  const id = Buffer.from(opener).toString("hex");
  const [key, ticket, requestId] = [`LOCK_${opener}`, id.padStart(32, "0"), id.padStart(32, "1")];
  await store.queue.enqueue({ key, ticket, requestId, lockTimeMs: 1_000, fencing: false }, 30_000);
  await open.promise;
  await store.release({ key, requestId }, 30_000);
  const inbox = (await inboxes(client)).find((channel) => !before.includes(channel));
  if (inbox === undefined) throw new Error("Expected the store to open an inbox");
  let looks = 0;
  return {
    store,
    async heard() {
      // Messages that were published before the marker arrive before it.
      const reached = deferred();
      marker = { id: `marker ${(looks += 1)}`, reached: reached.resolve };
      await client.publish(inbox, marker.id);
      await reached.promise;
      return wakeUps.splice(0);
    },
    async close() {
      unsubscribe();
      await store.close();
    },
  };
}

async function inboxes(client: Redis): Promise<string[]> {
  return (await client.pubsub("CHANNELS", "lockweave:1:inbox:*")) as string[];
}
