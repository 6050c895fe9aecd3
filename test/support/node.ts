import { join } from "node:path";

/** Runs what follows, be it in TypeScript, in a process of its own. */
export const NODE: readonly [string, ...string[]] = [
  process.execPath,
  "--require",
  join(__dirname, "transpile.cjs"),
];
