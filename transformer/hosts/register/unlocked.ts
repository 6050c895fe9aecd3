import { readFileSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";
import { mayHaveTags } from "../../read/spelling";
import { isInstalled } from "../../resolve/installed";
import { problem } from "../../text/problems";
import { tagsInFile, unlockedOf, type Unlocked } from "../../verify/declared";
import { namesOf } from "../../verify/source-import";
import { mappedSources } from "../../verify/source-maps";
import { unlockedBySources, unlockedByTags } from "../../verify/unlocked-file";
import { tagsOfFunctionsIn } from "../bundlers/lost-tags";
import { fileError } from "../one-file/file-error";
import { parser } from "../../parser/parser";
import { tsconfigFor } from "./compilers/tsconfig";

/**
 * Rejects JavaScript that was built without the weave. Such code has no locks, although there are tags in its own comments, in the
 * declarations next to it, or in its source. Also rejects tagged TypeScript of a package, which tsx would run without a weave. Without a
 * tag, the cost is a lookup of the declarations and the source, and a search in their text.
 *
 * @throws an error in the format of the compiler
 */
export function refuseUnlocked(path: string, code: string): void {
  const isJavaScript = /\.[cm]?jsx?$/.test(path);
  if (!isJavaScript && !isInstalled(path)) return;
  const unlocked = unlockedByTags(parser(), path, code);
  if (unlocked !== undefined) refuse("unlockedDependency", path, unlocked);
  if (!isJavaScript) return;
  const ofSources = unlockedBySources(parser(), path, code) ?? byProject(path, code);
  if (ofSources !== undefined) refuse("lockOfSourceMissing", path, ofSources);
}

function refuse(name: "unlockedDependency" | "lockOfSourceMissing", path: string, { tags }: Unlocked): never {
  const { code, message } = problem(name, { start: 0, end: 0 }, namesOf(tags), basename(path));
  throw fileError(`${relative(process.cwd(), path)}: error ${code}: ${message}`);
}

/** Compares code without a source map with the tags of the source that has the same path in the project. */
function byProject(path: string, code: string): Unlocked | undefined {
  if (mappedSources({ fileName: path, text: code }).length > 0) return undefined;
  const source = sourceInProject(path);
  if (source === undefined || !mayHaveTags(readFileSync(source, "utf8"))) return undefined;
  const ts = parser();
  // The file may be a bundle, without the unused functions of the source.
  return unlockedOf(ts, tagsOfFunctionsIn(path, code, tagsInFile(ts, source)) ?? [], path, code);
}

/** Returns the source of a file in the output directory of its tsconfig.json. */
function sourceInProject(path: string): string | undefined {
  const { config, outDir = "dist", rootDir = "src" } = isInstalled(path) ? {} : directoriesFor(path);
  if (config === undefined) return undefined;
  const home = dirname(config);
  const name = relative(resolve(home, outDir), path);
  if (name.startsWith("..") || isAbsolute(name)) return undefined;
  return [resolve(home, rootDir), join(home, "src"), home]
    .flatMap((root) => ["ts", "tsx"].map((letters) => join(root, name.replace(/(?<=\.[cm]?)jsx?$/, letters))))
    .find(isFile);
}

interface Directories {
  /** The path of the tsconfig.json. */
  readonly config?: string;
  readonly outDir?: string | undefined;
  readonly rootDir?: string | undefined;
}

function directoriesFor(path: string): Directories {
  try {
    const { path: config, content } = tsconfigFor(path);
    const { outDir, rootDir } = content.compilerOptions ?? {};
    return config === "" ? {} : { config, outDir, rootDir };
  } catch {
    return {}; // It extends a package that is not installed, as in a production image.
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
