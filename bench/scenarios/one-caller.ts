import { judgeDistinctKeys } from "../referee";
import { openCrew, type Scenario, type Stage } from "./scenario";

/** The bare cost of a lock, without any other caller. */
export const oneCaller: Scenario<"sections" | "commands"> = {
  name: "one-caller",
  title: "1 caller, distinct keys",
  plays: 3, // Several plays, because the time in which this machine wakes up varies, and no other callers hide it.
  figures: {
    sections: { title: "sections/s", unit: "/s", better: "more", show: "ratio" },
    commands: { title: "commands per section", unit: "", better: "less", show: "value" },
  },
  async play(stage) {
    return { sections: await sectionsPerSecond(stage), commands: await commandsPerSection(stage) };
  },
};

/** The caller does not wait for the reply to the release. So it never learns of a loss that only this reply would show. */
export const oneCallerThatLeaves: Scenario<"sections"> = {
  name: "one-caller-leaves",
  title: "1 caller, distinct keys, release not awaited",
  plays: 3,
  players: ["raw", "lockweave"],
  figures: { sections: oneCaller.figures.sections },
  async play(stage) {
    return { sections: await sectionsPerSecond(stage, true) };
  },
};

const LOOP = { keys: "distinct", callers: 1, sectionMs: 0, pauseMs: 0 } as const;

async function sectionsPerSecond(stage: Stage, leaves = false): Promise<number> {
  await using crew = await openCrew(stage, 1);
  const { settlingMs, durationMs } = stage;
  return judgeDistinctKeys(await crew.loop({ ...LOOP, leaves, settlingMs, durationMs })).sectionsPerSecond;
}

/** Runs to the end, so that no section is counted in part. */
async function commandsPerSection(stage: Stage): Promise<number> {
  const { counting } = stage;
  await using crew = await openCrew(stage, 1, counting.port);
  const before = counting.commands;
  const { sections } = judgeDistinctKeys(await crew.loop({ ...LOOP, sectionsEach: 500 }));
  return (counting.commands - before) / sections;
}
