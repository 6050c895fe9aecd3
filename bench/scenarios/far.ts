import { judgeDistinctKeys, judgeOneKey } from "../referee";
import { FLEET_LOOP, FLEET_PROCESSES } from "./fleet";
import { openCrew, type Scenario } from "./scenario";

/** Redis on another machine: the scenarios with one caller and with the fleet, with a delay of 1 ms each way. */
export const far: readonly [Scenario<"sections">, Scenario<"sections" | "idleGap">] = [
  {
    name: "far-one-caller",
    title: "1 caller, distinct keys, Redis 1 ms away",
    figures: { sections: { title: "sections/s", unit: "/s", better: "more", show: "ratio" } },
    async play(stage) {
      const { settlingMs, durationMs } = stage;
      await using crew = await openCrew(stage, 1, stage.far.port);
      const loop = { keys: "distinct", callers: 1, sectionMs: 0, pauseMs: 0 } as const;
      const run = await crew.loop({ ...loop, settlingMs, durationMs });
      return { sections: judgeDistinctKeys(run).sectionsPerSecond };
    },
  },
  {
    name: "far-fleet",
    title: "4 processes x 8 callers, one key, sections of 1.2 ms, Redis 1 ms away",
    figures: {
      sections: { title: "sections/s", unit: "/s", better: "more", show: "ratio" },
      idleGap: { title: "mean idle gap", unit: "ms", better: "less", show: "value" },
    },
    async play(stage) {
      const { settlingMs, durationMs } = stage;
      await using crew = await openCrew(stage, FLEET_PROCESSES, stage.far.port);
      const run = await crew.loop({ ...FLEET_LOOP, settlingMs, durationMs });
      const { sectionsPerSecond, idleGapMs } = judgeOneKey(run);
      return { sections: sectionsPerSecond, idleGap: idleGapMs };
    },
  },
];
