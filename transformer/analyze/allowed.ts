import { problem } from "../text/problems";
import type { Finding, Spot } from "./finding";

/** Matches `lockweave-allow LW1503: the audit trail may be late`, in a comment on the line or on the line above it. */
const ALLOW = /(?:\/\/|\*).*?\blockweave-allow\s+(LW1[45]\d\d)\b(?:\s*:\s*(\S))?/;

/** Returns the findings that no comment allows. A comment without a reason is a finding of its own. */
export function notAllowed(findings: readonly Finding[]): Finding[] {
  return findings.flatMap((finding) => {
    const allowed = finding.proof.flatMap((spot) => allowancesAt(spot, finding.problem.code));
    if (allowed.some(({ hasReason }) => hasReason)) return [];
    const [bare] = allowed;
    if (bare === undefined) return [finding];
    const { file, start, end } = bare.at;
    const missingReason = problem("allowedWithoutReason", { start, end }, finding.problem.code);
    return [{ file, problem: missingReason, isCertain: true, proof: [bare.at] }];
  });
}

function allowancesAt(
  { file, start }: Spot,
  code: string,
): { readonly at: Spot; readonly hasReason: boolean }[] {
  const starts = file.getLineStarts();
  const { line } = file.getLineAndCharacterOfPosition(start);
  return [line - 1, line].flatMap((index) => {
    const from = starts[index];
    if (from === undefined) return [];
    const text = file.text.slice(from, starts[index + 1] ?? file.text.length);
    const [words, found, reason] = ALLOW.exec(text) ?? [];
    if (words === undefined || found !== code) return [];
    const at = from + text.indexOf("lockweave-allow");
    return [
      {
        at: { file, start: at, end: at + `lockweave-allow ${code}`.length },
        hasReason: reason !== undefined,
      },
    ];
  });
}
