import { RESULT } from "./program";
import type { Expectation } from "./expectation";

/** How a program went, from its build to its end. */
export type Outcome =
  | { readonly kind: "locked" | "free"; readonly results: string }
  | { readonly kind: "refused"; readonly at: "build" | "run"; readonly said: string };

/** Our codes, and words that ask for something. */
const OURS = /LW1\d{3}|LOCK_[A-Z_]+|LockNotWovenError/;
const CURE = /Fix: |\b(?:Let|Set|Add|Put|Build|Compile|Run) /;

/** Reads what the program has printed. */
export function outcomeOf(code: number | null, output: string): Outcome {
  const line = output.split("\n").find((one) => one.includes(RESULT));
  if (code !== 0 || line === undefined) return { kind: "refused", at: "run", said: output };
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
  readonly kind: "broken" | "no cure" | "refused" | "unlocked" | "stale lock" | "other results";
  readonly text: string;
}

/**
 * Returns what is wrong with an outcome, or `undefined`.
 *
 * @param control what the program prints without locks
 */
export function faultIn(outcome: Outcome, expected: Expectation, control: string): Fault | undefined {
  const wanted = KINDS[expected];
  if (outcome.kind === "refused") {
    const { at, said } = outcome;
    if (!OURS.test(said)) return { kind: "broken", text: `the setup is broken at the ${at}:\n${said}` };
    if (!CURE.test(said)) return { kind: "no cure", text: `the refusal names no cure:\n${said}` };
    if (wanted.includes("refused")) return undefined;
    return { kind: "refused", text: `it has to work, and is refused at the ${at}:\n${said}` };
  }
  if (!wanted.includes(outcome.kind)) {
    return outcome.kind === "free"
      ? { kind: "unlocked", text: "the program ran UNLOCKED" }
      : { kind: "stale lock", text: "the tag is gone, and the program still has its lock" };
  }
  if (outcome.results === control) return undefined;
  return { kind: "other results", text: `the program printed ${outcome.results} and not ${control}` };
}
