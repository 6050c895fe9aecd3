import { existsSync, readFileSync } from "node:fs";
import { parser, type Parser } from "../../parser/parser";
import { groupedBy } from "../../text/grouped-by";
import type { Problem } from "../../text/problems";
import { isInstalled } from "../../resolve/installed";
import { filesBehind, packageResolver } from "../../resolve/loaded-file";
import { isTypeScript } from "../../resolve/package-entry";
import { sourceAt, specifiersIn } from "../../resolve/specifiers";
import type { PlacedProblem } from "../../verify/project";
import { importProblem, importAt } from "../../verify/source-import";
import { unlockedIn } from "../../verify/unlocked-file";
import { findingIn, type Finding } from "../one-file/weaver";
import { SOURCE_FILES } from "./source-files";

// A bundler may leave a package of the workspace out of its output. Node then loads what the package exports. If that is TypeScript, or
// JavaScript that was built without the weave, no plugin sees it.

/** An import that stays in the output. */
export interface ExternalImport {
  readonly specifier: string;
  /** The path of the importing file, which may not exist. */
  readonly importer: string;
}

export interface FindingsInFile {
  readonly path: string;
  readonly findings: readonly Finding[];
}

/**
 * Returns the errors at imports that lead to a package of the workspace without its locks. Each package is reported at its first import,
 * unless a comment at any of its imports allows it.
 */
export function unlockedExternals(imports: readonly ExternalImport[]): FindingsInFile[] {
  const own = imports.filter(({ importer }) => SOURCE_FILES.test(importer) && !isInstalled(importer));
  const resolve = packageResolver();
  const byFile = groupedBy(own, ({ specifier, importer }) => resolve(specifier, importer));
  return [...byFile].flatMap(([loaded, from]) => {
    const ts = parser();
    const unlocked = loaded === undefined ? [] : unlockedBehind(ts, loaded);
    if (unlocked.length === 0) return [];
    const onDisk = from.filter(({ importer }) => existsSync(importer));
    const sorted = onDisk.toSorted((a, b) => (a.importer < b.importer ? -1 : 1));
    const reported = unlocked.map((one) => sorted.map((each) => reportedAt(ts, each, one)));
    const first = reported.flatMap((each) => (each.includes(undefined) ? [] : each.slice(0, 1)));
    return first.flatMap((each) => (each === undefined ? [] : [findingsOf(each)]));
  });
}

/** Matches what may be an import of a package, also in a comment or of types. */
const PACKAGE_IMPORT =
  /\b(?:from|import|require)\b(?:[\s(]|\/\*[\s\S]*?\*\/|\/\/.*)*(["'`])(?![./\\])([^\s"'`\\]+)\1/g;

/**
 * Returns the imports of files that are still in the outputs and lead to packages of the workspace, for hosts that do not say which imports
 * stay outside of the bundle.
 *
 * @param files the paths of all files of the user's own that the host loaded
 */
export function importsKeptIn(
  files: ReadonlySet<string>,
  outputs: readonly string[],
): readonly ExternalImport[] {
  const resolve = packageResolver();
  const isKept = new Map<string, boolean>();
  const isQuoted = (specifier: string): boolean =>
    outputs.some((code) => [`"`, "'", "`"].some((quote) => code.includes(quote + specifier + quote)));
  return [...files].flatMap((importer) => {
    if (!SOURCE_FILES.test(importer) || !existsSync(importer)) return [];
    const text = readFileSync(importer, "utf8");
    const written = new Set(Array.from(text.matchAll(PACKAGE_IMPORT), ([, , specifier = ""]) => specifier));
    const kept = [...written].filter((specifier) => {
      if (!isKept.has(specifier)) isKept.set(specifier, isQuoted(specifier));
      const file = isKept.get(specifier) === true ? resolve(specifier, importer) : undefined;
      return file !== undefined && !isInstalled(file) && !files.has(file);
    });
    if (kept.length === 0) return [];
    const ts = parser();
    const loaded = new Set(specifiersIn(sourceAt(ts, importer)).map((literal) => literal.text));
    return kept.filter((specifier) => loaded.has(specifier)).map((specifier) => ({ specifier, importer }));
  });
}

interface UnlockedFile {
  readonly file: string;
  readonly tags: Parameters<typeof importProblem>[2];
}

/** Returns the files without their locks that run when this file is imported. */
function unlockedBehind(ts: Parser, loaded: string): UnlockedFile[] {
  return filesBehind(ts, loaded).flatMap((file) => {
    const { tags } = unlockedIn(ts, file, readFileSync(file, "utf8")) ?? {};
    return tags === undefined ? [] : [{ file, tags }];
  });
}

interface Reported {
  readonly path: string;
  readonly text: string;
  readonly problem: Problem;
}

/** Returns the error at an import, or `undefined` if a comment allows it. */
function reportedAt(
  ts: Parser,
  { specifier, importer }: ExternalImport,
  { file, tags }: UnlockedFile,
): Reported | undefined {
  const source = sourceAt(ts, importer);
  const literal = specifiersIn(source).find(({ text }) => text === specifier);
  const imported =
    literal === undefined
      ? { file: source.file, specifier, at: { start: 0, end: 0 } } // Another plugin wrote this import.
      : importAt(literal, source.file);
  const kind = isTypeScript(file) ? "externalAsSource" : "unlockedDependency";
  const [found]: PlacedProblem[] = importProblem(kind, imported, tags, file);
  return found && { path: importer, text: source.file.text, problem: found.problem };
}

function findingsOf({ path, text, problem }: Reported): FindingsInFile {
  return { path, findings: [findingIn(text, problem)] };
}
