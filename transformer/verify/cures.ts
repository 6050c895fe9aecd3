import type { Reason, Unproved } from "./check";
import type { Project } from "./project";
import { isTestFile } from "./test-files";

/** What to do about it, one piece of advice a line. */
export function cures(
  projects: readonly Project[],
  unproved: readonly Unproved[],
  isBundled: boolean,
): string[] {
  const reasons = new Set(unproved.map(({ reason }) => reason));
  const has = (...some: Reason[]): boolean => some.some((reason) => reasons.has(reason));
  const { builder = "tspc", config = "" } = projects[0] ?? {};
  const entries = projects
    .filter(({ files, builder: by }) => files.length > 0 && by === "tspc")
    .map(({ plugin }) => plugin);
  const isIncremental = projects.some(
    ({ options }) => options.composite === true || options.incremental === true,
  );
  const advice: string[] = [];
  if (builder === "another") {
    if (has("unwoven", "tooFew", "copies", "broken", "stale")) {
      advice.push(
        "Build again, with Lockweave's plugin for your bundler: `npx lockweave init` writes it down.",
      );
    }
    if (has("cannotTell"))
      advice.push("Install TypeScript 5.9 or 6, which compiles what the output is held against.");
    return advice;
  }
  if (
    !isBundled &&
    has("unwoven", "tooFew", "broken") &&
    entries.some((plugin) => plugin?.transformProgram !== true)
  ) {
    advice.push(
      'Among the `plugins` in tsconfig.json, write { "transform": "lockweave/transformer", "transformProgram": true }.',
    );
  }
  if (has("unwoven", "tooFew")) {
    const tools =
      "plain `tsc`, TypeScript 7, esbuild, swc and Node's type stripping ignore plugins in silence";
    const how = isBundled
      ? `Bundle with Lockweave's plugin for your bundler, or compile with \`${builder}\` and bundle what it writes`
      : `Compile with \`${builder}\``;
    advice.push(`${how}: ${tools}.`);
    if (isBundled) advice.push("What no entry of the bundle takes in is not in it.");
    if (isBundled && unproved.some(({ file }) => isTestFile(file, config))) {
      advice.push("To leave tests out, name a tsconfig without them with `-p`.");
    }
  }
  if (has("copies")) {
    advice.push(
      "Give functions of one name and one key different names: in several files, their locks look like copies of one lock.",
    );
  }
  if (has("missing", "stale"))
    advice.push(`Build again, with \`${builder}\`: the output is not that of these sources.`);
  if (has("unwoven", "missing", "stale") && isIncremental && builder === "tspc") {
    advice.push("Use `tspc -b --force`: what plain `tsc -b` has built is up to date to TypeScript.");
  }
  if (has("broken") && isBundled) {
    advice.push("Let bundlers and minifiers leave async functions as they are: `target` es2018 or later.");
  }
  if (has("stale", "broken") && !isBundled) {
    advice.push("If a bundler or a minifier writes the output, name its files with `--output`.");
  }
  if (has("uncompiled")) {
    advice.push("Build the project that compiles these files, or name it: `lockweave check -p <tsconfig>`.");
  }
  if (has("cannotTell")) advice.push("Let TypeScript emit these files, with `target` es2015 or later.");
  return advice;
}
