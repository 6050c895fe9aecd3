import { join } from "node:path";

/** The command and options that run a program in a new process, also one in TypeScript. */
export const NODE: readonly [string, ...string[]] = [
  process.execPath,
  "--require",
  join(__dirname, "transpile.cjs"),
];
