/** A search of one model. */
export interface Search {
  /** The names that are defined for the preprocessor. */
  readonly defines: readonly string[];
  /** Whether a rule is missing, so that there must be an error. */
  readonly isMutant: boolean;
}

/** The result of a search. */
export interface Verdict {
  /** What is wrong, or `undefined` if the search ended as it must. */
  readonly problem: string | undefined;
  /** The number of states that were visited. */
  readonly states: number;
  /** The number of steps on the longest path. */
  readonly depth: number;
}

/** Reads the output of a verifier that SPIN generated. */
export function judge(output: string, { isMutant }: Search): Verdict {
  const [, depth, errors] = /depth reached (\d+), errors: (\d+)/.exec(output) ?? [];
  const [, states] = /^\s*([\d.e+]+) states, stored/m.exec(output) ?? [];
  const counts = { states: Number(states ?? 0), depth: Number(depth ?? 0) };
  return { problem: problemIn(output, errors, isMutant), ...counts };
}

function problemIn(output: string, errors: string | undefined, isMutant: boolean): string | undefined {
  if (errors === undefined) return `the verifier ended without a result: ${output.trim().slice(-200)}`;
  if (isMutant) {
    // Another error, such as a wrong index in the model, proves nothing about the rule.
    return Number(errors) > 0 && /assertion violated (?!- invalid array index)|acceptance cycle/.test(output)
      ? undefined
      : "there is no counterexample, although a rule is missing";
  }
  if (Number(errors) > 0) return `there is an error: ${/^pan:\d+: (.*)$/m.exec(output)?.[1] ?? "unknown"}`;
  const isCut =
    /max search depth too small|Search not completed|out of memory|reached -DMEMLIM/.test(output) ||
    output.includes("hash-compact");
  return isCut ? "the search was cut off" : undefined;
}

/** Returns the statements that no path reached, except the ends of endless processes. */
export function unreachedIn(output: string): readonly string[] {
  return [...output.matchAll(/^\s*\S+\.pml:(\d+), state \d+, "(.*)"$/gm)]
    .filter(([, , statement]) => statement !== "-end-")
    .map(([, line, statement]) => `line ${line ?? "?"}: ${statement ?? ""}`);
}
