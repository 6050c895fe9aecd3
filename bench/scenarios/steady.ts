import type { Loop } from "../loop";
import { judgeOneKey } from "../referee";
import { openCrew, type Scenario } from "./scenario";

const LOOP = { keys: "one", callers: 1, sectionMs: 1.2, pauseMs: 0 } as const satisfies Partial<Loop>;

/**
 * Processes with one caller each, which requests the lock again immediately. Each grant is a hand-off to another process, which the machine
 * has to schedule. With 32 processes, more want to run than it has cores.
 */
export const steady: readonly Scenario<"sections" | "commands" | "longestWait" | "leastToMost">[] = [
  2, 32,
].map((processes) => ({
  name: `steady-${processes}`,
  title: `${processes} processes, one caller each, one key, sections of 1.2 ms, no pauses`,
  figures: {
    sections: { title: "sections/s", unit: "/s", better: "more", show: "ratio" },
    commands: { title: "commands per section", unit: "", better: "less", show: "value" },
    longestWait: { title: "longest wait", unit: "ms", better: "less", show: "value" },
    leastToMost: { title: "least served process / most served", unit: "%", better: "more", show: "value" },
  },
  async play(stage) {
    await using crew = await openCrew(stage, processes, stage.counting.port);
    const { settlingMs, durationMs, counting } = stage;
    const before = counting.commands;
    const { sectionsPerSecond, sections, longestWaitMs, leastToMost } = judgeOneKey(
      await crew.loop({ ...LOOP, settlingMs, durationMs: 2 * durationMs }),
    );
    return {
      sections: sectionsPerSecond,
      commands: (counting.commands - before) / sections,
      longestWait: longestWaitMs,
      leastToMost: 100 * leastToMost,
    };
  },
}));
