import { isTestFile } from "../analyze/test-files";
import type { Reason, Unproved } from "./check";
import { shortPath } from "./outputs";
import type { Project } from "./project";

/** The builder that writes the output of `nest build`. */
export type NestOutput = "tsc" | "webpack" | "swc" | "rspack";

export interface CheckedProject {
  readonly cwd: string;
  /** Whether `--output` names the output. */
  readonly isBundled: boolean;
  /** The builder that writes the output if NestJS builds the project. */
  readonly nest: NestOutput | undefined;
  /** Returns the command line that runs a program of an installed package. */
  readonly running: (...words: readonly string[]) => string;
}

/** Returns advice for tags that are not proved, one piece of advice a line. */
export function fixesFor(
  projects: readonly Project[],
  unproved: readonly Unproved[],
  { cwd, isBundled, nest, running }: CheckedProject,
): string[] {
  const init = running("lockweave", "init");
  const reasons = new Set(unproved.map(({ reason }) => reason));
  const has = (...some: Reason[]): boolean => some.some((reason) => reasons.has(reason));
  const { builder = "tspc", config = "" } = projects[0] ?? {};
  const withoutPlugin = projects.filter(
    ({ files, builder: by, plugin }) =>
      files.length > 0 && by === "tspc" && plugin?.transformProgram !== true,
  );
  const isIncremental = projects.some(
    ({ options }) => options.composite === true || options.incremental === true,
  );
  const advice: string[] = [];
  const needsBundle =
    !isBundled && bundles(nest) && has("missing", "unwoven", "tooFew", "stale", "broken", "lowered");
  if (needsBundle) {
    advice.push(
      `NestJS builds with ${nest}, which writes bundles. Name them with \`--output\`, for example: \`${running("lockweave", "check", "--output", "dist")}\`.`,
    );
  }
  if (builder === "another") {
    if (has("unwoven", "tooFew", "copies", "broken", "lowered", "stale")) {
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
    has("unwoven", "tooFew", "broken", "lowered") &&
    withoutPlugin.length > 0
  ) {
    const names = withoutPlugin.map((project) => `\`${shortPath(project.config, cwd)}\``).join(", ");
    advice.push(
      `Add { "transform": "lockweave/transformer", "transformProgram": true } to \`plugins\` in ${names}.`,
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
      nest !== undefined && (!isBundled || bundles(nest))
        ? fixOfNest(nest, running)
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
  if (has("missing", "stale") && !needsBundle) {
    const by = isBundled ? "" : ` with \`${nest === undefined ? builder : "nest build"}\``;
    advice.push(
      has("stale")
        ? `Build again${by}. The output was not built from these sources.`
        : `Build${by} first. There is no output of these sources.`,
    );
  }
  if (has("unwoven", "missing", "stale") && isIncremental && builder === "tspc") {
    if (nest === undefined)
      advice.push(
        `Use \`${running("tspc", "-b", "--force")}\`. TypeScript does not rebuild what plain \`tsc -b\` has built.`,
      );
    else if (nest === "tsc")
      advice.push(
        "If `nest build` changes nothing, delete the `.tsbuildinfo` files. TypeScript skips files that have not changed.",
      );
  }
  if (has("lowered") && isBundled) {
    advice.push(
      "Set the `target` of bundlers and minifiers to es2018 or later, so that they keep async functions.",
    );
  }
  if (has("broken") && isBundled) {
    advice.push(
      "If a tool changed the locks, name its input with `--output` instead, and report the form to Lockweave. `check` knows the forms of common minifiers.",
    );
  }
  if (has("stale", "broken", "lowered") && !isBundled && !needsBundle) {
    advice.push("If a bundler or a minifier writes the output, name its files with `--output`.");
  }
  if (has("bundled")) {
    advice.push(
      `Another tool compiled the sources once more. Add Lockweave's plugin to it, which \`${init}\` does for the common ones, and build again. If nothing runs these files, delete them.`,
    );
  }
  if (has("uncompiled")) {
    advice.push(
      `Build the project that compiles these files, or name it: \`${running("lockweave", "check", "-p", "<tsconfig>")}\`.`,
    );
  }
  if (has("cannotTell"))
    advice.push("Configure TypeScript to emit these files, with `target` es2015 or later.");
  return advice;
}

/** Whether the builder of NestJS writes bundles instead of one file for each source. */
export function bundles(nest: NestOutput | undefined): nest is "webpack" | "rspack" {
  return nest === "webpack" || nest === "rspack";
}

function fixOfNest(nest: NestOutput, running: CheckedProject["running"]): string {
  const init = running("lockweave", "init");
  if (nest === "swc")
    return `The output of swc never contains locks. \`lockweave/register\` weaves it when the application starts, and \`${init}\` sets this up. \`${running("lockweave", "check", "--watch")}\` checks the tags.`;
  if (nest === "rspack")
    return `Run \`${init}\`, which adds Lockweave's plugin to the configuration of Rspack. Then build again with \`nest build\`.`;
  return `Run \`${init}\`, which patches TypeScript for \`nest build\`, and build again. If it is set up, \`npm install\` may have undone the patch: run \`${running("ts-patch", "install")}\`.`;
}
