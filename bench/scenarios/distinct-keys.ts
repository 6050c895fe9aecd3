import { judgeDistinctKeys } from "../referee";
import { openCrew, type Scenario } from "./scenario";

/** A busy process with many callers at once, none of which blocks another. */
export const distinctKeys: readonly Scenario<"sections" | "cpu">[] = [64, 1_000].map((callers) => ({
  name: `distinct-${callers}`,
  title: `${callers.toLocaleString("en")} callers, distinct keys`,
  figures: {
    sections: { title: "sections/s", unit: "/s", better: "more", show: "ratio" },
    cpu: { title: "client CPU per section", unit: "µs", better: "less", show: "ratio" },
  },
  async play(stage) {
    await using crew = await openCrew(stage, 1);
    const { settlingMs, durationMs } = stage;
    const { sectionsPerSecond, cpuMsPerSection } = judgeDistinctKeys(
      await crew.loop({ keys: "distinct", callers, sectionMs: 0, pauseMs: 0, settlingMs, durationMs }),
    );
    return { sections: sectionsPerSecond, cpu: 1_000 * cpuMsPerSection };
  },
}));
