import { judgeDistinctKeys } from "../referee";
import { openCrew, type Scenario, type Stage } from "./scenario";

/** The plain cost of a lock: nobody else wants it, and nobody else is there. */
export const oneCaller: Scenario<"sections" | "commands"> = {
  name: "one-caller",
  title: "1 caller, distinct keys",
  plays: 3, // Nothing hides how long this machine takes to wake up, which varies.
  figures: {
    sections: { title: "sections/s", unit: "/s", better: "more", show: "ratio" },
    commands: { title: "commands per section", unit: "", better: "less", show: "value" },
  },
  async play(stage) {
    return { sections: await sectionsPerSecond(stage), commands: await commandsPerSection(stage) };
  },
};

/** What a caller need not wait for, it does not: what the store then says of a lost lock, nobody is told. */
export const oneCallerThatLeaves: Scenario<"sections"> = {
  name: "one-caller-leaves",
  title: "1 caller, distinct keys, release not awaited (nor the store's word on a loss)",
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

/** To the end, so that no section is counted in part. */
async function commandsPerSection(stage: Stage): Promise<number> {
  const { counting } = stage;
  await using crew = await openCrew(stage, 1, counting.port);
  const before = counting.commands;
  const { sections } = judgeDistinctKeys(await crew.loop({ ...LOOP, sectionsEach: 500 }));
  return (counting.commands - before) / sections;
}
