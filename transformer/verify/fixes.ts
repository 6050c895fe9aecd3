import type { Reason, Unproved } from "./check";
import type { Project } from "./project";
import { isTestFile } from "./test-files";

/** What writes the output of `nest build`: TypeScript, for its builders tsc and webpack, or another compiler. */
export type NestOutput = "tsc" | "swc" | "rspack";

/**
 * Returns advice for tags that are not proved, one piece of advice a line.
 *
 * @param isBundled whether `--output` names the output
 * @param init the command line of \`lockweave init\`
 * @param nest what writes the output if NestJS builds the project
 */
export function fixesFor(
  projects: readonly Project[],
  unproved: readonly Unproved[],
  isBundled: boolean,
  init: string,
  nest: NestOutput | undefined,
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
        `Build again with Lockweave's plugin for your bundler. \`${init}\` adds it to the bundler's configuration.`,
      );
    }
    if (has("cannotTell"))
      advice.push(
        "Install TypeScript 5.9 or 6. `check` compiles the sources with it, and compares the output with the result.",
      );
    return advice;
  }
  if (
    !isBundled &&
    (nest === undefined || nest === "tsc") &&
    has("unwoven", "tooFew", "broken") &&
    entries.some((plugin) => plugin?.transformProgram !== true)
  ) {
    advice.push(
      'Add { "transform": "lockweave/transformer", "transformProgram": true } to `plugins` in tsconfig.json.',
    );
  }
  if (has("unwoven", "tooFew")) {
    if (isBundled)
      advice.push(
        "If no entry of the bundle imports the function, import it, or leave it out of the project.",
      );
    const how = isBundled
      ? `Build with Lockweave's plugin for your bundler, or compile with \`${builder}\` and bundle its output`
      : `Compile with \`${builder}\``;
    advice.push(
      !isBundled && nest !== undefined
        ? fixOfNest(nest, init)
        : `${how}. Plain \`tsc\`, TypeScript 7, esbuild, swc, and Node's type stripping ignore plugins silently.`,
    );
    if (isBundled && unproved.some(({ file }) => isTestFile(file, config))) {
      advice.push("To leave tests out, name a tsconfig without them with `-p`.");
    }
  }
  if (has("copies")) {
    advice.push(
      "Rename functions that share a name and a key. In different files, their locks look like copies of one lock.",
    );
  }
  if (has("missing", "stale"))
    advice.push(
      `Build again${isBundled ? "" : ` with \`${nest === undefined ? builder : "nest build"}\``}. The output was not built from these sources.`,
    );
  if (has("unwoven", "missing", "stale") && isIncremental && builder === "tspc") {
    if (nest === undefined)
      advice.push("Use `tspc -b --force`. TypeScript does not rebuild what plain `tsc -b` has built.");
    else if (nest === "tsc")
      advice.push(
        "If `nest build` changes nothing, delete the `.tsbuildinfo` files. TypeScript skips files that have not changed.",
      );
  }
  if (has("broken") && isBundled) {
    advice.push(
      "Set the `target` of bundlers and minifiers to es2018 or later, so that they keep async functions.",
    );
  }
  if (has("stale", "broken") && !isBundled) {
    advice.push("If a bundler or a minifier writes the output, name its files with `--output`.");
  }
  if (has("uncompiled")) {
    advice.push("Build the project that compiles these files, or name it: `lockweave check -p <tsconfig>`.");
  }
  if (has("cannotTell"))
    advice.push("Configure TypeScript to emit these files, with `target` es2015 or later.");
  return advice;
}

function fixOfNest(nest: NestOutput, init: string): string {
  if (nest === "swc")
    return `The output of swc never contains locks. \`lockweave/register\` weaves it when the application starts, and \`${init}\` sets this up. \`lockweave check --watch\` checks the tags.`;
  if (nest === "rspack")
    return `Run \`${init}\`, which adds Lockweave's plugin to the configuration of Rspack. Then build again with \`nest build\`, and name the output with \`--output\`.`;
  return `Run \`${init}\`, which patches TypeScript for \`nest build\`, and build again. If it is set up, \`npm install\` may have undone the patch: run \`ts-patch install\`.`;
}
