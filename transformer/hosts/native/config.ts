import { existsSync, readFileSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import type { Parser } from "../../parser/parser";
import { resolvedFrom } from "../../resolve/loaded-file";

/** One tsconfig.json, without the settings that it inherits. */
export interface ConfigFile {
  readonly path: string;
  readonly settings: Readonly<Record<string, unknown>>;
  /** The paths of the tsconfig.json files of the referenced projects. */
  readonly references: readonly string[];
  /** Whether it only references projects, and has no files of its own. */
  readonly isSolution: boolean;
}

/** Returns the projects in build order: each project after those that it references. */
export function projectsInOrder(ts: Parser, config: string, seen = new Set<string>()): string[] {
  if (seen.has(config)) return [];
  seen.add(config);
  const [own] = configFiles(ts, config);
  const { references = [], isSolution = false } = own ?? {};
  const before = references.flatMap((path) => projectsInOrder(ts, path, seen));
  return isSolution ? before : [...before, config];
}

/** Returns the tsconfig.json followed by those that it extends. Settings in earlier ones win. */
export function configFiles(ts: Parser, path: string, seen: ReadonlySet<string> = new Set()): ConfigFile[] {
  if (seen.has(path)) return []; // The compiler reports this cycle.
  const content = parse(ts, readFileSync(path, "utf8"));
  const extended = [content["extends"] ?? []].flat().filter((name) => typeof name === "string");
  const settings = (content["compilerOptions"] ?? {}) as ConfigFile["settings"];
  const references = referencesIn(path, content["references"]);
  const { files } = content;
  const isSolution = references.length > 0 && Array.isArray(files) && files.length === 0;
  const inner = extended
    .toReversed()
    .map((name) => extendedPath(path, name))
    .filter((found) => found !== undefined)
    .flatMap((found) => configFiles(ts, found, new Set([...seen, path])));
  return [{ path, settings, references, isSolution }, ...inner];
}

/** Parses JSON with comments and trailing commas. */
function parse(ts: Parser, text: string): Readonly<Record<string, unknown>> {
  const scanner = ts.createScanner(ts.ScriptTarget.Latest, true, ts.LanguageVariant.Standard, text);
  const { CloseBraceToken, CloseBracketToken, EndOfFileToken } = ts.SyntaxKind;
  const tokens: string[] = [];
  for (let token = scanner.scan(); token !== EndOfFileToken; token = scanner.scan()) {
    const closes = token === CloseBraceToken || token === CloseBracketToken;
    if (closes && tokens.at(-1) === ",") tokens.pop();
    tokens.push(scanner.getTokenText());
  }
  try {
    return JSON.parse(tokens.join(" ")) as Readonly<Record<string, unknown>>;
  } catch {
    return {}; // The compiler reports the syntax error.
  }
}

function referencesIn(config: string, references: unknown): string[] {
  if (!Array.isArray(references)) return [];
  return (references as { readonly path?: unknown }[]).flatMap(({ path }) => {
    if (typeof path !== "string") return [];
    const full = resolve(dirname(config), path);
    const file = full.endsWith(".json") ? full : join(full, "tsconfig.json");
    return existsSync(file) ? [file] : []; // The compiler reports a missing project.
  });
}

function extendedPath(from: string, name: string): string | undefined {
  if (isAbsolute(name) || name.startsWith(".")) {
    const path = resolve(dirname(from), name);
    return [path, `${path}.json`, join(path, "tsconfig.json")].find(
      (candidate) => candidate.endsWith(".json") && existsSync(candidate),
    );
  }
  for (const id of [name, `${name}.json`, `${name}/tsconfig.json`]) {
    const path = resolvedFrom(from, id);
    if (path?.endsWith(".json") === true) return path;
  }
  return undefined;
}
