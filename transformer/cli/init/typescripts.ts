import { realpathSync } from "node:fs";
import { compilingTypeScript } from "../../hosts/native/compiler";
import type { Draft } from "./draft";
import type { Project } from "./project";

// TypeScript 7 has no JavaScript API, so projects keep TypeScript 6 alongside it. `typescript` may be either of them, or an alias of the
// package `@typescript/typescript6`.

/**
 * Explains why `tspc` cannot replace `tsc`. ts-patch accepts only `typescript` itself, as version 5 or 6.
 *
 * @returns `undefined` if `tspc` can replace `tsc`, and "" if the version alone explains it
 */
export function whyNotTspc(project: Project): string | undefined {
  const { typescript, typescriptOfTsc: ofTsc, nativeAlias } = project;
  if (typescript !== undefined && typescript.major >= 7) return "";
  if (project.isTypeScriptAliased) return "ts-patch accepts no other package as `typescript`";
  if (ofTsc !== undefined && ofTsc.major >= 7) return `\`tsc\` is TypeScript ${ofTsc.version}`;
  // Nothing is installed yet.
  return ofTsc === undefined && nativeAlias !== undefined
    ? `\`${nativeAlias}\` may bring its \`tsc\``
    : undefined;
}

/** Returns the option that keeps the compiler of a script, if `lockweave build` would use another one. */
export function compilerOption(project: Project, program: string): string[] {
  const usual = compilingTypeScript(project.path("tsconfig.json"));
  const { typescripts, typescriptOfTsc: ofTsc, nativeAlias } = project;
  const wanted =
    program === "tsc"
      ? (typescripts.find(({ dir, major }) => major >= 7 && isSame(dir, ofTsc?.dir))?.name ??
        (ofTsc === undefined && project.typescript?.major !== 7 ? nativeAlias : undefined))
      : typescripts.find(({ script, hasTsc }) => script !== undefined && !hasTsc)?.name;
  return wanted === undefined || wanted === usual?.name ? [] : ["--typescript", wanted];
}

function isSame(dir: string, other: string | undefined): boolean {
  return other !== undefined && realpathSync(dir) === realpathSync(other);
}

/** Whether ts-patch can patch `typescript`. If not, adds a step by hand that says what to do. */
export function isPatchable(draft: Draft, project: Project): boolean {
  const isNative = project.typescript !== undefined && project.typescript.major >= 7;
  if (!isNative && !project.isTypeScriptAliased) return true;
  const why = "ts-patch needs the package `typescript` itself, as version 5.9 or 6:";
  const lines = [[...project.packageManager.installDev, "typescript@6"].join(" ")];
  // Several tools of a project may need a patched TypeScript, but one step is enough.
  if (!draft.byHand.some((step) => step.why === why)) draft.byHand.push({ file: "package.json", why, lines });
  return false;
}
