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
  checked: CheckedProject,
): string[] {
  const { nest, running } = checked;
  const reasons = new Set(unproved.map(({ reason }) => reason));
  const has: Has = (...some) => some.some((reason) => reasons.has(reason));
  const fixes = [
    needsOutput(checked) &&
      has("missing", "unwoven", "tooFew", "stale", "broken", "lowered") &&
      `NestJS builds with ${nest}, which writes bundles. Name them with \`--output\`, for example: \`${running("lockweave", "check", "--output", "dist")}\`.`,
    ...(projects[0]?.builder === "another"
      ? bundlerFixes(has, checked)
      : [
          ...weaveFixes(has, projects, unproved, checked),
          ...buildFixes(has, projects, checked),
          ...outputFixes(has, checked),
        ]),
  ];
  return fixes.filter((fix) => fix !== false);
}

/** A piece of advice, or `false` if it does not apply. */
type Fix = string | false;

/** Returns whether tags are not proved for one of these reasons. */
type Has = (...some: readonly Reason[]) => boolean;

/** Whether NestJS writes bundles that `--output` should name. */
function needsOutput({ isBundled, nest }: CheckedProject): boolean {
  return !isBundled && bundles(nest);
}

function bundlerFixes(has: Has, { running }: CheckedProject): Fix[] {
  return [
    has("unwoven", "tooFew", "copies", "broken", "lowered", "stale") &&
      `Build again with Lockweave's plugin for your bundler. \`${running("lockweave", "init")}\` adds it to the bundler's configuration.`,
    has("cannotTell") &&
      "Install TypeScript 5.9 or 6. `check` compiles the sources with it, and compares the output with the result.",
  ];
}

/** Returns advice on the sources, and on how to weave them. */
function weaveFixes(
  has: Has,
  projects: readonly Project[],
  unproved: readonly Unproved[],
  { cwd, isBundled, nest, running }: CheckedProject,
): Fix[] {
  const { builder = "tspc", config = "" } = projects[0] ?? {};
  const withoutPlugin = projects.filter(
    ({ files, builder: by, plugin }) =>
      files.length > 0 && by === "tspc" && plugin?.transformProgram !== true,
  );
  const names = withoutPlugin.map((project) => `\`${shortPath(project.config, cwd)}\``).join(", ");
  const how = isBundled
    ? `Build with Lockweave's plugin for your bundler, or compile with \`${builder}\` and bundle its output`
    : `Compile with \`${builder}\``;
  const isUnwoven = has("unwoven", "tooFew");
  return [
    has("unwoven", "tooFew", "broken", "lowered") &&
      !isBundled &&
      (nest === undefined || nest === "tsc") &&
      withoutPlugin.length > 0 &&
      `Add { "transform": "lockweave/transformer", "transformProgram": true } to \`plugins\` in ${names}.`,
    isUnwoven &&
      isBundled &&
      "If no entry of the bundle imports the function, import it, or leave it out of the project.",
    isUnwoven &&
      (nest !== undefined && (!isBundled || bundles(nest))
        ? fixOfNest(nest, running)
        : `${how}. Plain \`tsc\`, TypeScript 7, esbuild, swc, and Node's type stripping ignore plugins silently.`),
    isUnwoven &&
      isBundled &&
      unproved.some(({ file }) => isTestFile(file, config)) &&
      "To leave tests out, name a tsconfig without them with `-p`.",
    has("copies") &&
      "Rename functions that share a name and a key. In different files, their locks look like copies of one lock.",
  ];
}

/** Returns advice on how to build the current sources. */
function buildFixes(has: Has, projects: readonly Project[], checked: CheckedProject): Fix[] {
  const { isBundled, nest, running } = checked;
  const { builder = "tspc" } = projects[0] ?? {};
  const by = isBundled ? "" : ` with \`${nest === undefined ? builder : "nest build"}\``;
  const mayBeSkipped =
    has("unwoven", "missing", "stale") &&
    builder === "tspc" &&
    projects.some(({ options }) => options.composite === true || options.incremental === true);
  return [
    has("missing", "stale") &&
      !needsOutput(checked) &&
      (has("stale")
        ? `Build again${by}. The output was not built from these sources.`
        : `Build${by} first. There is no output of these sources.`),
    mayBeSkipped &&
      nest === undefined &&
      `Use \`${running("tspc", "-b", "--force")}\`. TypeScript does not rebuild what plain \`tsc -b\` has built.`,
    mayBeSkipped &&
      nest === "tsc" &&
      "If `nest build` changes nothing, delete the `.tsbuildinfo` files. TypeScript skips files that have not changed.",
  ];
}

/** Returns advice on output that has the wrong form, or that another project or tool writes. */
function outputFixes(has: Has, checked: CheckedProject): Fix[] {
  const { isBundled, running } = checked;
  return [
    has("lowered") &&
      isBundled &&
      "Set the `target` of bundlers and minifiers to es2018 or later, so that they keep async functions.",
    has("broken") &&
      isBundled &&
      "If a tool changed the locks, name its input with `--output` instead, and report the form to Lockweave. `check` knows the forms of common minifiers.",
    has("stale", "broken", "lowered") &&
      !isBundled &&
      !needsOutput(checked) &&
      "If a bundler or a minifier writes the output, name its files with `--output`.",
    has("bundled") &&
      `Another tool compiled the sources once more. Add Lockweave's plugin to it, which \`${running("lockweave", "init")}\` does for the common ones, and build again. If nothing runs these files, delete them.`,
    has("uncompiled") &&
      `Build the project that compiles these files, or name it: \`${running("lockweave", "check", "-p", "<tsconfig>")}\`.`,
    has("cannotTell") && "Configure TypeScript to emit these files, with `target` es2015 or later.",
  ];
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
