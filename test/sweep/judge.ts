import { RESULT } from "./program";
import type { Expectation } from "./expectation";

/** The outcome of a program, from its build to its exit. */
export type Outcome =
  | { readonly kind: "locked" | "free"; readonly results: string }
  | { readonly kind: "refused"; readonly at: "build" | "run"; readonly output: string };

/** Lockweave's codes, and phrases that start a fix. */
const OURS = /LW1\d{3}|LOCK_[A-Z_]+|LockNotWovenError/;
const FIX = /Fix: |\b(?:Let|Set|Add|Put|Build|Compile|Run) /;

/** Parses the output of the program. */
export function outcomeOf(code: number | null, output: string): Outcome {
  const line = output.split("\n").find((one) => one.includes(RESULT));
  if (code !== 0 || line === undefined) return { kind: "refused", at: "run", output };
  const printed = JSON.parse(line.slice(line.indexOf(RESULT) + RESULT.length)) as {
    readonly results: readonly string[];
    readonly noted: readonly string[];
    readonly most: number;
  };
  const results = JSON.stringify([printed.results, printed.noted]);
  return { kind: printed.most > 1 ? "free" : "locked", results };
}

const KINDS: Readonly<Record<Expectation, readonly Outcome["kind"][]>> = {
  locked: ["locked"],
  free: ["free"],
  safe: ["locked", "refused"],
  gone: ["free", "refused"],
};

export interface Fault {
  readonly kind: "broken" | "no fix" | "refused" | "unlocked" | "stale lock" | "other results";
  readonly text: string;
}

/**
 * Returns the fault in an outcome, or `undefined`.
 *
 * @param control the results of the program without locks
 */
export function faultIn(outcome: Outcome, expected: Expectation, control: string): Fault | undefined {
  const wanted = KINDS[expected];
  if (outcome.kind === "refused") {
    const { at, output } = outcome;
    if (!OURS.test(output)) return { kind: "broken", text: `the setup is broken at the ${at}:\n${output}` };
    if (!FIX.test(output)) return { kind: "no fix", text: `the refusal names no fix:\n${output}` };
    if (wanted.includes("refused")) return undefined;
    return { kind: "refused", text: `it must work, but is refused at the ${at}:\n${output}` };
  }
  if (!wanted.includes(outcome.kind)) {
    return outcome.kind === "free"
      ? { kind: "unlocked", text: "the program ran UNLOCKED" }
      : { kind: "stale lock", text: "the tag was removed, but the program still has its lock" };
  }
  if (outcome.results === control) return undefined;
  return { kind: "other results", text: `the program printed ${outcome.results} instead of ${control}` };
}
