import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { folderOf, type Change } from "./change";
import type { Verdict } from "./trial";

/** A mutant that changes no observable behavior. */
interface Equivalent {
  readonly file: string;
  readonly from: string;
  readonly to: string;
  readonly why: string;
}

export interface Tried {
  readonly change: Change;
  readonly verdict: Verdict;
}

interface Score {
  noticed: number;
  timedOut: number;
  survived: number;
  equivalent: number;
  doesNotCompile: number;
  /** The percentage of noticed mutants, among those that tests could notice. */
  score: number;
}

export const EQUIVALENTS = JSON.parse(
  readFileSync(join(__dirname, "equivalent.json"), "utf8"),
) as readonly Equivalent[];

/** @param what describes the chosen mutants */
export function report(what: Readonly<Record<string, unknown>>, tried: readonly Tried[]): void {
  const folders: Record<string, Score> = {};
  for (const { change, verdict } of tried) {
    for (const folder of [folderOf(change), "all"]) count((folders[folder] ??= noScore()), change, verdict);
  }
  const survivors = tried
    .filter(({ verdict }) => verdict.kind === "survived")
    .map(({ change, verdict }) => ({
      at: `${change.file}:${change.line}`,
      from: change.from,
      to: change.to,
      why: whyEquivalent(change) ?? `not reviewed, ${describeVerdict(verdict)}`,
    }));
  writeFileSync(
    join(__dirname, "report.json"),
    `${JSON.stringify({ ...what, folders, survivors }, undefined, 2)}\n`,
  );
  console.table(folders);
}

export function describe({ file, line, from, to }: Change): string {
  return `${file}:${line}\n  - ${from}\n  + ${to}`;
}

export function whyEquivalent({ file, from, to }: Change): string | undefined {
  return EQUIVALENTS.find((one) => one.file === file && one.from === from && one.to === to)?.why;
}

function describeVerdict(verdict: Verdict): string {
  if (verdict.kind !== "survived") return "";
  if (verdict.tests === 0) return "no test reaches it";
  return `${verdict.tests} tests reach it${verdict.outOfTime ? ", more than the budget allows" : ""}`;
}

function noScore(): Score {
  return { noticed: 0, timedOut: 0, survived: 0, equivalent: 0, doesNotCompile: 0, score: 100 };
}

function count(score: Score, change: Change, { kind }: Verdict): void {
  if (kind === "noticed") score.noticed += 1;
  else if (kind === "timed out") score.timedOut += 1;
  else if (kind === "does not compile") score.doesNotCompile += 1;
  else if (whyEquivalent(change) === undefined) score.survived += 1;
  else score.equivalent += 1;
  const noticed = score.noticed + score.timedOut;
  const all = noticed + score.survived;
  score.score = all === 0 ? 100 : Math.round((1_000 * noticed) / all) / 10;
}
