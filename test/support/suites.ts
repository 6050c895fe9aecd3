import test from "ava";

// Two suites share the test files. `npm test` runs what takes little time, and `npm run test:matrix` (which sets `MATRIX=1`) runs the rest.
// A test that is in neither word below runs in both.

export const isMatrix = process.env["MATRIX"] !== undefined;

/** For a test that takes long, or installs much. */
export const inMatrix = isMatrix ? test : test.skip;

/** For a test of `npm test` in a file that has tests of the matrix, too. */
export const outsideMatrix = isMatrix ? test.skip : test;

/** The same two words for tests that run one after the other. */
export const inMatrixSerially = isMatrix ? test.serial : test.skip;
export const outsideMatrixSerially = isMatrix ? test.skip : test.serial;
