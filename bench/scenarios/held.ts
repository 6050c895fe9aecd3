import { setTimeout as pause } from "node:timers/promises";
import { Crew } from "../crew";
import { LOCK_TIME_MS, type Scenario } from "./scenario";

/**
 * A process that holds many locks for a long time. Counts the commands that it sends during one lock time after all locks are held.
 * Afterwards the keys must still exist, which shows that the commands renewed them.
 */
export const held: Scenario<"renewals" | "heap"> = {
  name: "held",
  title: "10,000 held locks of 10 s, renewed",
  figures: {
    renewals: { title: "commands/s", unit: "/s", better: "less", show: "value" },
    heap: { title: "heap per lock beyond its token", unit: "B", better: "less", show: "value" },
  },
  atOnce: true,
  async play({ contestant, counting, quick, countKeys }) {
    const count = quick ? 2_000 : 10_000;
    const lockTimeMs = quick ? 3_000 : LOCK_TIME_MS;
    await using crew = new Crew(contestant, 1);
    await crew.open({ port: counting.port, clients: 1, lockTimeMs });
    const [record] = await crew.hold({ count, keyPrefix: `held-by-${contestant}` });
    const before = counting.commands;
    await pause(lockTimeMs);
    const commands = counting.commands - before;
    const kept = await countKeys(`*held-by-${contestant}:*`);
    if (kept < count) throw new Error(`${contestant} lost ${count - kept} of ${count} held locks`);
    return { renewals: commands / (lockTimeMs / 1_000), heap: record?.heapPerLockBytes ?? NaN };
  },
};
