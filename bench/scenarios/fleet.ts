import type { Loop } from "../loop";
import { judgeOneKey, type Run } from "../referee";
import { openCrew, type Scenario, type Stage } from "./scenario";

export const FLEET_PROCESSES = 4;

/** The settings for each process. */
export const FLEET_LOOP = {
  keys: "one",
  callers: 8,
  sectionMs: 1.2,
  pauseMs: 2,
} as const satisfies Partial<Loop>;

/**
 * Several processes whose callers all use the same key. A caller pauses after its section. Otherwise, impatient callers would serve
 * themselves over and over, which the scenario `crowd` shows.
 */
export const fleet: Scenario<
  "sections" | "commands" | "idleGap" | "longestWait" | "leastToMost" | "overtakes"
> = {
  name: "fleet",
  title: "4 processes x 8 callers, one key, sections of 1.2 ms",
  figures: {
    sections: { title: "sections/s", unit: "/s", better: "more", show: "ratio" },
    commands: { title: "commands per section", unit: "", better: "less", show: "value" },
    idleGap: { title: "mean idle gap", unit: "ms", better: "less", show: "value" },
    longestWait: { title: "longest wait", unit: "ms", better: "less", show: "value" },
    leastToMost: {
      title: "least served process / most served",
      unit: "%",
      better: "more",
      show: "value",
    },
    overtakes: { title: "overtaking grants", unit: "%", better: "less", show: "value" },
  },
  async play(stage) {
    const timed = judgeOneKey(await timedRun(stage));
    return {
      sections: timed.sectionsPerSecond,
      commands: await commandsPerSection(stage),
      idleGap: timed.idleGapMs,
      longestWait: timed.longestWaitMs,
      leastToMost: 100 * timed.leastToMost,
      overtakes: 100 * timed.overtakes,
    };
  },
};

async function timedRun(stage: Stage): Promise<Run> {
  await using crew = await openCrew(stage, FLEET_PROCESSES);
  const { settlingMs, durationMs } = stage;
  return await crew.loop({ ...FLEET_LOOP, settlingMs, durationMs: 1.4 * durationMs });
}

async function commandsPerSection(stage: Stage): Promise<number> {
  const { counting, durationMs } = stage;
  await using crew = await openCrew(stage, FLEET_PROCESSES, counting.port);
  const before = counting.commands;
  const run = await crew.loop({ ...FLEET_LOOP, durationMs: 0.5 * durationMs });
  return (counting.commands - before) / judgeOneKey(run).sections;
}
