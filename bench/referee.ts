import type { LoopRecord } from "./loop";

/** What a crew did between one start signal and its end. */
export interface Run {
  readonly startAt: number;
  readonly settlingMs: number;
  readonly durationMs: number | undefined;
  /** One a process. */
  readonly records: readonly LoopRecord[];
}

/** What is read off a run: rates, waits and gaps after the settling, as the CPU; order over the whole. */
export interface Judgement {
  /** In the whole run. */
  readonly sections: number;
  readonly sectionsPerSecond: number;
  /** Of all processes together. */
  readonly cpuMsPerSection: number;
  /** From asking to entering; of those who never entered, to the end. So a run's length is the most. */
  readonly longestWaitMs: number;
  /** Mean time from when one left to when the next entered. */
  readonly idleGapMs: number;
  /** Share of the grants that went to a caller although one that had begun to wait earlier was still waiting. */
  readonly overtakes: number;
  /** Sections of the process with the fewest for each section of the one with the most. */
  readonly leastToMost: number;
}

interface Section {
  readonly process: number;
  readonly askedAt: number;
  readonly enteredAt: number;
  readonly leftAt: number;
}

/** Two processes that ask within this time have no order that they could agree on. */
const TOGETHER_MS = 2;

/** The clocks of two processes agree at least this well. */
const CLOCK_ERROR_MS = 0.01;

/**
 * Judges a run in which all callers wanted one key.
 *
 * @throws {Error} when two were inside at the same time
 */
export function judgeOneKey(run: Run): Judgement {
  const sections = inOrder(run);
  const stillWaiting = run.records.flatMap(({ waiting }) => waiting);
  const togetherMs = run.records.length > 1 ? TOGETHER_MS : 0;
  assertExclusive(run, sections);
  const counted = afterSettling(run, sections);
  const gaps = counted.slice(1).map((section, index) => section.enteredAt - (counted[index]?.leftAt ?? NaN));
  return {
    ...judgeDistinctKeys(run),
    idleGapMs: mean(gaps),
    overtakes: overtakes(sections, stillWaiting, togetherMs) / sections.length,
  };
}

/** Judges a run in which nobody stood in anybody's way. */
export function judgeDistinctKeys(run: Run): Judgement {
  const sections = inOrder(run);
  const { startAt, settlingMs, durationMs = NaN, records } = run;
  const to = startAt + durationMs;
  const counted = afterSettling(run, sections);
  const byProcess = records.map((_, index) => counted.filter(({ process }) => process === index).length);
  return {
    sections: sections.length,
    sectionsPerSecond: (1_000 * counted.length) / (durationMs - settlingMs),
    cpuMsPerSection: sum(records.map(({ cpuMs }) => cpuMs)) / counted.length,
    longestWaitMs: [
      ...counted.map(({ askedAt, enteredAt }) => enteredAt - askedAt),
      ...records.flatMap(({ waiting }) => waiting.map((askedAt) => to - askedAt)),
    ].reduce((longest, wait) => Math.max(longest, wait), 0),
    idleGapMs: NaN,
    overtakes: NaN,
    leastToMost: Math.min(...byProcess) / Math.max(...byProcess),
  };
}

/** Those entered when the code was compiled and the crowd had formed, and before the end. */
function afterSettling(
  { startAt, settlingMs, durationMs = Infinity }: Run,
  sections: readonly Section[],
): readonly Section[] {
  // A timer may start the run a moment early, which matters where nothing has to settle.
  const from = settlingMs > 0 ? startAt + settlingMs : -Infinity;
  const to = startAt + durationMs;
  return sections.filter(({ enteredAt }) => enteredAt >= from && enteredAt < to);
}

/** The sections of all processes, in the order in which they were entered. */
function inOrder(run: Run): Section[] {
  const sections = run.records.flatMap((record, process) => {
    const own: Section[] = [];
    for (let at = 0; at < record.sections.length; at += 3) {
      const [askedAt = NaN, enteredAt = NaN, leftAt = NaN] = record.sections.subarray(at, at + 3);
      own.push({ process, askedAt, enteredAt, leftAt });
    }
    return own;
  });
  return sections.toSorted((a, b) => a.enteredAt - b.enteredAt);
}

/** Within a process by the token that each section left inside; between processes by the common clock. */
function assertExclusive(run: Run, sections: readonly Section[]): void {
  const byToken = sum(run.records.map(({ overlaps }) => overlaps));
  const byClock = sections
    .map(({ enteredAt }, index) => (sections[index - 1]?.leftAt ?? -Infinity) - enteredAt)
    .filter((overlapMs) => overlapMs > CLOCK_ERROR_MS);
  if (byToken + byClock.length === 0) return;
  throw new Error(
    `mutual exclusion is broken: of ${sections.length} sections ${byToken} overlapped by token, and ${byClock.length} by clock, for ${Math.max(0, ...byClock)} ms at most`,
  );
}

/** How many were let in although one that had asked earlier was let in later, or never. */
function overtakes(
  sections: readonly Section[],
  stillWaiting: readonly number[],
  togetherMs: number,
): number {
  let overtaken = 0;
  let longestWaiting = Math.min(...stillWaiting, Infinity);
  for (const { askedAt } of sections.toReversed()) {
    if (longestWaiting < askedAt - togetherMs) overtaken += 1;
    longestWaiting = Math.min(longestWaiting, askedAt);
  }
  return overtaken;
}

function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
