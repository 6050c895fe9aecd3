import type { Redis } from "ioredis";
import { holdInside, type Enter } from "./contestant";

/** The part of the package that is used here. The package is installed only when the benchmark runs. */
interface RedlockPackage {
  readonly default: new (
    clients: readonly Redis[],
    settings: { readonly retryCount: number },
  ) => { using(keys: string[], lockTimeMs: number, section: () => Promise<void>): Promise<void> };
}

const FOR_EVER = -1;

export const enterRedlock: Enter = async (redis, lockTimeMs) => {
  const { default: Redlock } = require("redlock") as RedlockPackage;
  const redlock = new Redlock([redis], { retryCount: FOR_EVER });
  return {
    run: (key, section) => redlock.using([key], lockTimeMs, section),
    hold: (key) => holdInside((section) => redlock.using([key], lockTimeMs, section)),
    async close() {
      await redis.quit();
    },
  };
};
