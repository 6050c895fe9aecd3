import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { changedText, type Change } from "./change";
import { compile } from "./mirror";
import type { ReachingTest } from "./reach";
import { CACHE, ROOT } from "./sources";
import { TestProcess, type Outcome } from "./test-process";

/** The result of the tests for a mutant. */
export type Verdict =
  | { readonly kind: "noticed"; readonly testFile: string; readonly title: string }
  | { readonly kind: "timed out"; readonly testFile: string }
  | { readonly kind: "survived"; readonly tests: number; readonly outOfTime: boolean }
  | { readonly kind: "does not compile" };

/** Tests of one file that run together. */
interface Batch {
  readonly testFile: string;
  readonly titles: readonly string[];
  readonly serial: boolean;
  readonly ms: number;
  /** A higher value means that the batch is more likely to notice the mutant. */
  readonly hope: number;
}

/** Slower tests wait for timers or other processes, so they run concurrently. */
const QUICK_MS = 150;
const SIDE_BY_SIDE = 4;
const LOAD_MS = 150;

/** A run that takes this much longer than usual counts as hanging. */
const TOO_LONG = 5;
const TOO_LONG_MS = 5_000;

/** Runs the tests that reach a mutant, the most promising first. Tries one mutant at a time. */
export class Trials {
  readonly #tester: TestProcess;
  readonly #compiled: string;
  readonly #budgetMs: number;
  /** The number of mutants in a file that each test has noticed. */
  readonly #noticed: Map<string, number>;
  /** The tests that pass on the unchanged code, in the same batches. */
  readonly #passing = new Map<string, boolean>();

  constructor(mirror: string, budgetMs: number, job: number, noticed: Map<string, number>) {
    this.#tester = new TestProcess({ root: ROOT, mirror });
    mkdirSync(join(CACHE, "mutants"), { recursive: true });
    this.#compiled = join(CACHE, "mutants", `${job}.js`);
    this.#budgetMs = budgetMs;
    this.#noticed = noticed;
  }

  /** @param tests the tests that reach the mutant */
  async try(change: Change, tests: readonly ReachingTest[]): Promise<Verdict> {
    writeFileSync(this.#compiled, compile(change.file, changedText(change)));
    let leftMs = this.#budgetMs;
    for (const batch of this.#batches(change, tests)) {
      if (leftMs <= 0) return { kind: "survived", tests: tests.length, outOfTime: true };
      leftMs -= batch.ms;
      const outcome = await this.#run(batch, change);
      if (outcome.kind === "passed") continue;
      // Rules out chance: the failed test must fail again alone, and pass without the change.
      const suspect = outcome.kind === "failed" ? { ...batch, titles: [outcome.title] } : batch;
      const again = await this.#run(suspect, change);
      if (again.kind === "passed" || !(await this.#passesUnchanged(suspect))) continue;
      const { testFile } = batch;
      if (outcome.kind === "timed out") return { kind: "timed out", testFile };
      if (outcome.kind === "broken") return { kind: "noticed", testFile, title: outcome.what };
      const { title } = outcome;
      const key = `${change.file} ${testFile} ${title}`;
      this.#noticed.set(key, (this.#noticed.get(key) ?? 0) + 1);
      return { kind: "noticed", testFile, title };
    }
    return { kind: "survived", tests: tests.length, outOfTime: false };
  }

  close(): void {
    this.#tester.close();
  }

  async #passesUnchanged(batch: Batch): Promise<boolean> {
    const key = `${batch.testFile} ${batch.titles.join(" ")}`;
    const known = this.#passing.get(key) ?? (await this.#run(batch)).kind === "passed";
    this.#passing.set(key, known);
    return known;
  }

  #run({ testFile, titles, serial, ms }: Batch, change?: Change): Promise<Outcome> {
    const mutant = change && { file: change.file, compiled: this.#compiled };
    return this.#tester.run({ testFile, titles, serial, mutant }, ms * TOO_LONG + TOO_LONG_MS);
  }

  /** Returns the batches, the most promising first. */
  #batches(change: Change, tests: readonly ReachingTest[]): Batch[] {
    const batches: Batch[] = [];
    for (const testFile of new Set(tests.map((test) => test.testFile))) {
      const worth = (test: ReachingTest): number => this.#hopeOf(change, test) / (test.ms + 1);
      const best = tests.filter((test) => test.testFile === testFile).toSorted((a, b) => worth(b) - worth(a));
      const quick = best.filter(({ ms }) => ms <= QUICK_MS);
      const slow = best.filter(({ ms }) => ms > QUICK_MS);
      if (quick.length > 0) batches.push(this.#batch(change, testFile, quick, true));
      for (let at = 0; at < slow.length; at += SIDE_BY_SIDE) {
        batches.push(this.#batch(change, testFile, slow.slice(at, at + SIDE_BY_SIDE), false));
      }
    }
    return batches.toSorted((a, b) => b.hope / b.ms - a.hope / a.ms);
  }

  #batch(change: Change, testFile: string, tests: readonly ReachingTest[], serial: boolean): Batch {
    const hopes = tests.map((test) => this.#hopeOf(change, test));
    return {
      testFile,
      titles: tests.map(({ title }) => title),
      serial,
      ms: LOAD_MS + sum(tests.map(({ ms }) => ms)),
      hope: sum(hopes),
    };
  }

  /** Prefers tests that noticed other mutants of the file, and tests that reach few other files. */
  #hopeOf({ file }: Change, { testFile, title, reached }: ReachingTest): number {
    const noticed = this.#noticed.get(`${file} ${testFile} ${title}`) ?? 0;
    const files = Object.keys(reached).length;
    return noticed + 1 / files;
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
