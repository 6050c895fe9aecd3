import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { Enter } from "./contestant";

const POLL_MS = 10;

/** The baseline: a short hand-written lock, as a programmer who knows Redis would write it. */
export const enterRaw: Enter = async (redis, lockTimeMs) => {
  const releaseScript = String(await redis.script("LOAD", RELEASE));
  const renewScript = String(await redis.script("LOAD", RENEW));

  const acquire = async (key: string): Promise<string> => {
    const token = randomUUID();
    while ((await redis.set(key, token, "PX", lockTimeMs, "NX")) !== "OK") await pause(POLL_MS);
    return token;
  };

  return {
    async run(key, section) {
      const token = await acquire(key);
      try {
        await section();
      } finally {
        await redis.evalsha(releaseScript, 1, key, token);
      }
    },
    async runWithoutWaiting(key, section) {
      const token = await acquire(key);
      try {
        await section();
      } finally {
        void redis.evalsha(releaseScript, 1, key, token);
      }
    },
    async hold(key) {
      const token = await acquire(key);
      // The same as the latest renewal among the other libraries.
      const renewal = setInterval(
        () => void redis.evalsha(renewScript, 1, key, token, lockTimeMs),
        0.8 * lockTimeMs,
      );
      return {
        release: () => {
          clearInterval(renewal);
          return redis.evalsha(releaseScript, 1, key, token);
        },
      };
    },
    async close() {
      await redis.quit();
    },
  };
};

export const RELEASE = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`;
const RENEW = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end return 0`;
