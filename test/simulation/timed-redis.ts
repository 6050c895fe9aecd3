import type { Redis } from "ioredis";
import { redisStore } from "../../runtime/stores/redis";
import type { Store } from "../../runtime/store";
import { deferred } from "../support/deferred";

/**
 * Moves everything that has a time by ARGV[1] milliseconds into the past: as if so much time had gone by. What
 * is over by then is gone, as it would be.
 */
const PASS = `
local ms = tonumber(ARGV[1])
for _, key in ipairs(redis.call("KEYS", ARGV[2])) do
  local left = redis.call("PTTL", key)
  if left >= 0 and left <= ms then
    redis.call("DEL", key)
  elseif left >= 0 then
    redis.call("PEXPIRE", key, left - ms)
    if redis.call("TYPE", key).ok == "zset" then
      for _, entry in ipairs(redis.call("ZRANGE", key, 0, -1)) do
        local isMinus = string.sub(entry, 1, 1) == "-"
        redis.call("ZINCRBY", key, (isMinus and ms or -ms) * 1000, entry)
      end
    end
  end
end
`;

/** The Redis store of one process, with an ear on its inbox. */
export interface TimedProcess {
  readonly store: Store;
  /** What its inbox has heard since the last look. */
  heard(): Promise<string[]>;
  close(): Promise<void>;
}

/** Lets `ms` pass for the keys that match, without waiting. */
export async function passInRedis(client: Redis, pattern: string, ms: number): Promise<void> {
  await client.eval(PASS, 0, ms, pattern);
}

export async function timedProcess(client: Redis, opener: string): Promise<TimedProcess> {
  const before = await inboxes(client);
  const store = redisStore(client);
  const open = deferred();
  const hints: string[] = [];
  let marker: { readonly id: string; readonly reached: () => void } | undefined;
  const deafen = store.listen((requestId) => {
    if (requestId === undefined) open.resolve();
    else if (requestId === marker?.id) marker.reached();
    else hints.push(requestId);
  });
  // The inbox opens when somebody first waits.
  const request = { key: `LOCK_${opener}`, requestId: opener.padStart(32, "0"), lockTimeMs: 1_000 };
  await store.wait({ ...request, fencing: false });
  await open.promise;
  await store.leave(request.key, request.requestId);
  const inbox = (await inboxes(client)).find((channel) => !before.includes(channel));
  if (inbox === undefined) throw new Error("Expected the store to open an inbox");
  let looks = 0;
  return {
    store,
    async heard() {
      // What was published before this is heard before it.
      const reached = deferred();
      marker = { id: `marker ${(looks += 1)}`, reached: reached.resolve };
      await client.publish(inbox, marker.id);
      await reached.promise;
      return hints.splice(0);
    },
    async close() {
      deafen();
      await store.close();
    },
  };
}

async function inboxes(client: Redis): Promise<string[]> {
  return (await client.pubsub("CHANNELS", "lockweave:inbox:*")) as string[];
}
