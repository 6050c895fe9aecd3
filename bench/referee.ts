import type { LoopRecord } from "./loop";

/** The records of a crew between a start signal and the end. */
export interface Run {
  readonly startAt: number;
  readonly settlingMs: number;
  readonly durationMs: number | undefined;
  /** One record for each process. */
  readonly records: readonly LoopRecord[];
}

/** The results of a run. Rates, waits, gaps, and CPU time count after the settling, and the order counts in the whole run. */
export interface Judgement {
  /** The number of sections in the whole run. */
  readonly sections: number;
  readonly sectionsPerSecond: number;
  /** The CPU time of all processes together. */
  readonly cpuMsPerSection: number;
  /**
   * The time from requesting a lock to entering. A caller that never entered counts until the end, so the maximum is the length of the run.
   */
  readonly longestWaitMs: number;
  /** The mean time between one caller leaving and the next one entering. */
  readonly idleGapMs: number;
  /** The share of grants that went to a caller while an earlier one was still waiting. */
  readonly overtakes: number;
  /** The sections of the slowest process divided by those of the fastest. */
  readonly leastToMost: number;
}

interface Section {
  readonly process: number;
  readonly requestedAt: number;
  readonly enteredAt: number;
  readonly leftAt: number;
}

/** Requests of two processes within this time have no order that both could know. */
const TOGETHER_MS = 2;

/** The clocks of two processes differ by less than this. */
const CLOCK_ERROR_MS = 0.01;

/**
 * Judges a run in which all callers used one key.
 *
 * @throws {Error} if two callers were inside at the same time
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

/** Judges a run in which no caller blocked another one. */
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
      ...counted.map(({ requestedAt, enteredAt }) => enteredAt - requestedAt),
      ...records.flatMap(({ waiting }) => waiting.map((requestedAt) => to - requestedAt)),
    ].reduce((longest, wait) => Math.max(longest, wait), 0),
    idleGapMs: NaN,
    overtakes: NaN,
    leastToMost: Math.min(...byProcess) / Math.max(...byProcess),
  };
}

/** Returns the sections that were entered after the settling and before the end. */
function afterSettling(
  { startAt, settlingMs, durationMs = Infinity }: Run,
  sections: readonly Section[],
): readonly Section[] {
  // A timer may start the run slightly early, which matters if there is no time to settle.
  const from = settlingMs > 0 ? startAt + settlingMs : -Infinity;
  const to = startAt + durationMs;
  return sections.filter(({ enteredAt }) => enteredAt >= from && enteredAt < to);
}

/** Returns the sections of all processes, in the order in which they were entered. */
function inOrder(run: Run): Section[] {
  const sections = run.records.flatMap((record, process) => {
    const own: Section[] = [];
    for (let at = 0; at < record.sections.length; at += 3) {
      const [requestedAt = NaN, enteredAt = NaN, leftAt = NaN] = record.sections.subarray(at, at + 3);
      own.push({ process, requestedAt, enteredAt, leftAt });
    }
    return own;
  });
  return sections.toSorted((a, b) => a.enteredAt - b.enteredAt);
}

/** Checks mutual exclusion: within a process by the token that each section leaves inside, and between processes by the common clock. */
function assertExclusive(run: Run, sections: readonly Section[]): void {
  const byToken = sum(run.records.map(({ overlaps }) => overlaps));
  const byClock = sections
    .map(({ enteredAt }, index) => (sections[index - 1]?.leftAt ?? -Infinity) - enteredAt)
    .filter((overlapMs) => overlapMs > CLOCK_ERROR_MS);
  if (byToken + byClock.length === 0) return;
  throw new Error(
    `mutual exclusion is broken: of ${sections.length} sections, ${byToken} overlapped by token and ${byClock.length} by clock, for at most ${Math.max(0, ...byClock)} ms`,
  );
}

/** Counts the grants that went to a caller while an earlier one was still waiting, which entered later or never. */
function overtakes(
  sections: readonly Section[],
  stillWaiting: readonly number[],
  togetherMs: number,
): number {
  let overtaken = 0;
  let longestWaiting = Math.min(...stillWaiting, Infinity);
  for (const { requestedAt } of sections.toReversed()) {
    if (longestWaiting < requestedAt - togetherMs) overtaken += 1;
    longestWaiting = Math.min(longestWaiting, requestedAt);
  }
  return overtaken;
}

function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
