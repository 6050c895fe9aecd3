import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beginTest, testAt } from "./counting";
import { CACHE, filesAt, hashOf, ROOT, textOf } from "./sources";
import { TestProcess } from "./test-process";
import type { Tested } from "./worker";

/** A test and the code that it runs. */
export interface ReachingTest {
  readonly testFile: string;
  readonly title: string;
  readonly ms: number;
  /** The regions that it reaches, by file. */
  readonly reached: Regions;
}

type Regions = Readonly<Record<string, readonly number[]>>;

/** The code that one test file reaches. It is valid until the test, that code, or the measuring code changes. */
interface Measured {
  readonly hashes: Readonly<Record<string, string>>;
  /** The regions that run when the file is loaded, and so count for all its tests. */
  readonly atLoad: Regions;
  readonly tests: readonly ReachingTest[];
  /** The outcome, if not all tests passed. */
  readonly trouble?: string;
}

/** Longer than any test file takes, one test after the other. */
const LIMIT_MS = 600_000;
const DIRECTORY = join(CACHE, "reach");
const MEASURING = ["counting.ts", "hook.ts", "regions.ts", "worker.ts"].map(
  (file) => `test/mutation/${file}`,
);

/**
 * Returns what each passing test reaches. Measures each test file once.
 *
 * @param counting the mirror that records the reached regions
 * @param paths of the tests
 * @param isOver whether to stop measuring
 */
export async function measureReach(
  counting: string,
  paths: readonly string[],
  isOver: () => boolean,
): Promise<ReachingTest[]> {
  mkdirSync(DIRECTORY, { recursive: true });
  const reachedPath = join(DIRECTORY, `${process.pid}.reached`);
  writeFileSync(reachedPath, "");
  beginTest(reachedPath, 0);
  const tester = new TestProcess({ root: ROOT, mirror: counting, reached: reachedPath });
  const tests: ReachingTest[] = [];
  for (const testFile of filesAt(...paths).filter((file) => file.endsWith(".test.ts"))) {
    const path = join(DIRECTORY, `${testFile.replaceAll("/", "-")}.json`);
    let measured = existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Measured) : undefined;
    if (measured === undefined || !isValid(measured)) {
      if (isOver()) break;
      measured = await measure(tester, testFile);
      writeFileSync(path, JSON.stringify(measured));
      const { trouble } = measured;
      console.log(
        `measured ${testFile}: ${measured.tests.length} tests${trouble === undefined ? "" : `, ${trouble}`}`,
      );
    }
    const { atLoad } = measured;
    for (const test of measured.tests) tests.push({ ...test, reached: union(atLoad, test.reached) });
  }
  tester.close();
  for (const file of [reachedPath, testAt(reachedPath)]) rmSync(file);
  return tests;
}

async function measure(tester: TestProcess, testFile: string): Promise<Measured> {
  const tested: Tested[] = [];
  let atLoad: Regions = {};
  const outcome = await tester.run({ testFile, serial: true, runsAll: true }, LIMIT_MS, (report) => {
    if (report.type === "loaded") atLoad = byFile(report.reached);
    if (report.type === "tested") tested.push(report);
  });
  const tests = tested
    .filter(({ passed }) => passed)
    .map(({ title, ms, reached }) => ({ testFile, title, ms, reached: byFile(reached) }));
  const files = new Set([
    ...MEASURING,
    testFile,
    ...[{ reached: atLoad }, ...tests].flatMap(({ reached }) => Object.keys(reached)),
  ]);
  return {
    hashes: Object.fromEntries([...files].map((file) => [file, hashOf(textOf(file))])),
    atLoad,
    tests,
    ...(outcome.kind === "passed" ? {} : { trouble: JSON.stringify(outcome) }),
  };
}

function byFile(regions: readonly string[]): Regions {
  const files: Record<string, number[]> = {};
  for (const region of new Set(regions)) {
    const [file = "", index] = region.split("#");
    (files[file] ??= []).push(Number(index));
  }
  return files;
}

function union(some: Regions, others: Regions): Regions {
  const files = new Set([...Object.keys(some), ...Object.keys(others)]);
  return Object.fromEntries(
    [...files].map((file) => [file, [...new Set([...(some[file] ?? []), ...(others[file] ?? [])])]]),
  );
}

function isValid({ hashes }: Measured): boolean {
  return Object.entries(hashes).every(
    ([file, hash]) => existsSync(join(ROOT, file)) && hashOf(textOf(file)) === hash,
  );
}
