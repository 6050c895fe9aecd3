import { judgeOneKey } from "../referee";
import { openCrew, type Scenario } from "./scenario";

/**
 * The lengths of an empty section. With 0, it yields to other promises. With the other one, it yields to everything that waits in the event
 * loop.
 */
const NO_TIME = 0;
const ONE_TURN = 0.001;

/** One process whose callers all use the same key. After its section, each caller pauses, or requests the lock again immediately. */
export const crowd: readonly Scenario<"sections" | "cpu" | "overtakes" | "longestWait">[] = [
  { name: "crowd-with-pauses", sectionMs: NO_TIME, pauseMs: 1, how: "sections of no time, pauses of 1 ms" },
  { name: "crowd", sectionMs: NO_TIME, pauseMs: 0, how: "sections of no time, no pauses" },
  { name: "crowd-turn", sectionMs: ONE_TURN, pauseMs: 0, how: "sections of one turn of the event loop" },
].map(({ name, sectionMs, pauseMs, how }) => ({
  name,
  title: `64 callers, one key, one process, ${how}`,
  figures: {
    sections: { title: "sections/s", unit: "/s", better: "more", show: "ratio" },
    cpu: { title: "client CPU per section", unit: "µs", better: "less", show: "ratio" },
    overtakes: {
      title: "overtaking grants",
      unit: "%",
      better: "less",
      show: "value",
    },
    longestWait: { title: "longest wait", unit: "ms", better: "less", show: "value" },
  },
  async play(stage) {
    await using crew = await openCrew(stage, 1);
    const { settlingMs, durationMs } = stage;
    const { sectionsPerSecond, cpuMsPerSection, overtakes, longestWaitMs } = judgeOneKey(
      await crew.loop({ keys: "one", callers: 64, sectionMs, pauseMs, settlingMs, durationMs }),
    );
    return {
      sections: sectionsPerSecond,
      cpu: 1_000 * cpuMsPerSection,
      overtakes: 100 * overtakes,
      longestWait: longestWaitMs,
    };
  },
}));
