import { dirname, relative, sep } from "node:path";

const TEST_DIRECTORIES: ReadonlySet<string> = new Set(["test", "tests", "__tests__", "e2e", "spec", "specs"]);
/** `pay.test.ts`, `app.e2e-spec.ts`, `pay_test.ts` */
const TEST_NAME = /[._-](?:test|spec)\.[cm]?[jt]sx?$/;

/** Whether the file is a test by its name, or by a directory between it and the tsconfig, if that is known. */
export function isTestFile(file: string, config: string | undefined): boolean {
  if (config === undefined) return TEST_NAME.test(file);
  const directories = relative(dirname(config), dirname(file)).split(sep);
  return TEST_NAME.test(file) || directories.some((directory) => TEST_DIRECTORIES.has(directory));
}
