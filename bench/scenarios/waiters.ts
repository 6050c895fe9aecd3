import { setTimeout as pause } from "node:timers/promises";
import { Crew } from "../crew";
import { LOCK_TIME_MS, type Scenario } from "./scenario";

const MEASURED_MS = 5_000;

/**
 * A process that waits for many keys which another process holds for a long time. Counts the commands that it sends meanwhile, and the heap
 * that a waiting call adds. A contestant that polls every key each 10 ms does not play, because that would be a million commands a second.
 */
export const waiters: Scenario<"commands" | "heap"> = {
  name: "waiters",
  title: "10,000 keys waited for in one process",
  figures: {
    commands: { title: "commands/s", unit: "/s", better: "less", show: "value" },
    heap: { title: "heap per waiter", unit: "B", better: "less", show: "value" },
  },
  players: ["lockweave"],
  async play({ contestant, redis, counting, quick }) {
    const count = quick ? 1_000 : 10_000;
    const holding = { count, keyPrefix: `waited-for-by-${contestant}` };
    await using holders = new Crew(contestant, 1);
    await holders.open({ port: redis, clients: 1, lockTimeMs: LOCK_TIME_MS });
    await holders.hold(holding);
    await using crew = new Crew(contestant, 1);
    await crew.open({ port: counting.port, clients: 1, lockTimeMs: LOCK_TIME_MS });
    const [record] = await crew.wait(holding);
    const before = counting.commands;
    await pause(MEASURED_MS);
    return {
      commands: (counting.commands - before) / (MEASURED_MS / 1_000),
      heap: record?.heapPerLockBytes ?? NaN,
    };
  },
};
