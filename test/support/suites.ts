import test from "ava";

// Two suites share the test files. `npm test` runs the quick tests, and `npm run test:matrix` (which sets `MATRIX=1`) runs the
// rest. A test that uses none of these functions runs in both.

export const isMatrix = process.env["MATRIX"] !== undefined;

/** For a test that is slow or installs packages. */
export const inMatrix = isMatrix ? test : test.skip;

/**
 * For a test that plays rounds of faults, which takes long. It runs only if the environment variable has the number of rounds. The part
 * `rounds` of the matrix sets it.
 */
export const inRounds = (variable: string): typeof test.serial | typeof test.skip =>
  process.env[variable] === undefined ? test.skip : test.serial;

/** For a test of `npm test` in a file that also has tests of the matrix. */
export const outsideMatrix = isMatrix ? test.skip : test;

/** The same for tests that run serially. */
export const inMatrixSerially = isMatrix ? test.serial : test.skip;
export const outsideMatrixSerially = isMatrix ? test.skip : test.serial;
