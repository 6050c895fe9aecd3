import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Change } from "./change";
import { CACHE, hashOf, textOf } from "./sources";
import type { Verdict } from "./trial";

interface Entry {
  readonly verdict: Verdict;
  readonly codeHash: string;
  readonly testsHash: string;
}

/** The verdicts on the mutants of this and earlier runs, so that the next run can continue. */
export class Results {
  readonly #path = join(CACHE, "results.json");
  readonly #testsHash: string;
  readonly #entries: Record<string, Entry>;

  /** @param testFiles the test files that run against the mutants */
  constructor(testFiles: readonly string[]) {
    this.#testsHash = hashOf(testFiles.map((file) => hashOf(textOf(file))).join());
    this.#entries = existsSync(this.#path)
      ? (JSON.parse(readFileSync(this.#path, "utf8")) as Record<string, Entry>)
      : {};
  }

  /** Returns `undefined` if the mutant must be tried, because it is new or its code or the tests have changed. */
  of(change: Change): Verdict | undefined {
    const entry = this.#entries[nameOf(change)];
    if (entry?.codeHash !== hashOf(textOf(change.file))) return undefined;
    return entry.verdict.kind === "survived" && entry.testsHash !== this.#testsHash
      ? undefined
      : entry.verdict;
  }

  add(change: Change, verdict: Verdict): void {
    const codeHash = hashOf(textOf(change.file));
    this.#entries[nameOf(change)] = { verdict, codeHash, testsHash: this.#testsHash };
    writeFileSync(this.#path, JSON.stringify(this.#entries));
  }
}

function nameOf({ file, start, end, replacement }: Change): string {
  return `${file} ${start} ${end} ${replacement}`;
}
