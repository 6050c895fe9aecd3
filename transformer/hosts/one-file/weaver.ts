import type * as TS from "typescript";
import { inheritedAmong, notOwn } from "../../../runtime/base/options";
import type { Parser } from "../../parser/parser";
import { didYouMean } from "../../text/did-you-mean";
import { lineStarts } from "../../text/line-starts";
import type { Problem } from "../../text/problems";
import { readDefaults, type Defaults } from "../../read/attributes";
import { hasOnlyCommonJs, moduleSyntax, type ModuleSyntax } from "../../read/module-syntax";
import type { TextOnDisk } from "../../text/source-map";
import type { ModuleFormat } from "../../weave/runtime-import";
import { mayNeedWeave, weave, type WovenMap } from "../../weave/weave";
import { pathInPackage } from "../path-in-package";
import type { PluginOptions } from "./options";

export type { PluginOptions } from "./options";

/** A problem of a file in the form that hosts display. */
export interface Finding {
  /** A stable code, such as `LW1001`. */
  readonly code: string;
  readonly message: string;
  /** Starts at 1. */
  readonly line: number;
  /** Starts at 0, in UTF-16 units. */
  readonly column: number;
  readonly length: number;
  /** The text of that line. */
  readonly lineText: string;
}

export interface WovenFile {
  /** The text with the locks, on the same lines. */
  readonly code: string;
  /** Maps the woven text to the original text. */
  readonly map: WovenMap;
  /** The target for source maps that a compiler creates from `code`. */
  readonly source: TextOnDisk;
  /** The module syntax in which the file imports other modules. */
  readonly syntax: ModuleSyntax;
  /** If there are any, the build should fail. The affected functions refuse to run. */
  readonly errors: readonly Finding[];
  readonly warnings: readonly Finding[];
}

/**
 * Weaves one file that has not been parsed yet.
 *
 * @param module With `"as written"`, a file that may be CommonJS imports the runtime in the syntax that it uses itself. With `"esm or script"`, the file is an ES module, unless
 *   it uses only the syntax of CommonJS.
 * @returns `undefined` if there is nothing to weave
 */
export type FileWeaver = (
  fileName: string,
  text: string,
  module?: ModuleFormat | "as written" | "esm or script",
) => WovenFile | undefined;

/**
 * Creates the weaver for hosts that see one file at a time, without a type checker: bundlers, Node's loader, and Jest.
 *
 * @throws {TypeError} if the plugin's options are invalid
 */
export function fileWeaver(parser: Parser, options: PluginOptions = {}): FileWeaver {
  const defaults = defaultsOf(options);
  return (fileName, text, module = "esm") => {
    if (!mayNeedWeave(text)) return undefined;
    const name = runAs(fileName);
    const sourceFile = parser.createSourceFile(name, text, parser.ScriptTarget.Latest);
    if (name !== fileName && !hasBody(parser, sourceFile)) return undefined; // It contains only declarations.
    const source = { ts: parser, file: sourceFile };
    const syntax = moduleSyntax(source);
    const formatOf = (): ModuleFormat => {
      if (module === "as written") return syntax;
      if (module !== "esm or script") return module;
      return hasOnlyCommonJs(source) ? "script" : "esm";
    };
    const woven = weave(fileName, text, {
      ts: parser,
      module: formatOf(),
      defaults,
      sourceFile,
      pathOf: pathInPackage,
    });
    if (woven === undefined) return undefined;
    const lines = lineStarts(text);
    const findingOf = (found: Problem): Finding => findingIn(text, found, lines);
    return {
      code: woven.code,
      map: woven.map(),
      source: { text, positions: woven.positions },
      syntax,
      errors: woven.diagnostics.map(findingOf),
      warnings: woven.warnings.map(findingOf),
    };
  };
}

/** Formats a finding like compilers: `src/pay.ts(3,43): error LW1202: ...`. */
export function formatFinding(
  fileName: string,
  { code, message, line, column }: Finding,
  kind = "error",
): string {
  return `${fileName}(${line},${column + 1}): ${kind} ${code}: ${message}`;
}

const OPTIONS = ["defaults"];

function defaultsOf(options: PluginOptions): Defaults {
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) {
    throw new TypeError(`lockweave's plugin has no option \`${unknown}\`.${didYouMean(unknown, OPTIONS)}`);
  }
  const inherited = inheritedAmong(OPTIONS, options);
  if (inherited !== undefined)
    throw new TypeError(`The options of lockweave's plugin: ${notOwn(inherited)}.`);
  const { defaults, problems } = readDefaults(options.defaults ?? {});
  const [wrong] = problems;
  if (wrong !== undefined) throw new TypeError(wrong.message);
  return defaults;
}

/** Matches names that TypeScript takes for declarations. A host may run such a file nevertheless. */
const DECLARATIONS = /\.d(?=\.(?:[cm]?ts|[^/\\]+\.ts)$)/g;

/** A name by which TypeScript parses `pay.d.orders.ts` as code. */
function runAs(fileName: string): string {
  return fileName.replaceAll(DECLARATIONS, "_d");
}

function hasBody(ts: Parser, node: TS.Node): boolean {
  if (ts.isFunctionLike(node) && "body" in node && node.body !== undefined) return true;
  return ts.forEachChild(node, (child) => hasBody(ts, child) || undefined) ?? false;
}

/** Converts a problem to a finding. */
export function findingIn(
  text: string,
  { code, message, start, end }: Problem,
  lines: readonly number[] = lineStarts(text),
): Finding {
  const line = lines.findLastIndex((from) => from <= start);
  const from = lines[line] ?? 0;
  const lineText = text.slice(from, lines[line + 1] ?? text.length).trimEnd();
  return { code, message, line: line + 1, column: start - from, length: end - start, lineText };
}
