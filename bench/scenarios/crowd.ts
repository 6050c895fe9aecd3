import { judgeOneKey } from "../referee";
import { openCrew, type Scenario } from "./scenario";

/** One process whose callers all want the same key; after its section, each pauses or asks again at once. */
export const crowd: readonly Scenario<"sections" | "overtakes" | "longestWait">[] = [1, 0].map((pauseMs) => ({
  name: pauseMs > 0 ? "crowd-with-pauses" : "crowd",
  title: `64 callers, one key, one process, ${pauseMs > 0 ? `pauses of ${pauseMs} ms` : "no pauses"}`,
  figures: {
    sections: { title: "sections/s", unit: "/s", better: "more", show: "ratio" },
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
    const { sectionsPerSecond, overtakes, longestWaitMs } = judgeOneKey(
      await crew.loop({ keys: "one", callers: 64, sectionMs: 0, pauseMs, settlingMs, durationMs }),
    );
    return { sections: sectionsPerSecond, overtakes: 100 * overtakes, longestWait: longestWaitMs };
  },
}));
