import { fileWeaver, formatFinding, type Finding, type PluginOptions } from "../one-file/weaver";
import { chained, type SourceMap } from "./chained";
import { COMPONENTS, tagsInComponent } from "./components";
import { tagsLostFrom } from "./lost-tags";
import { parser } from "../../parser/parser";
import { shortPath, sourceFileOf } from "./source-files";

// Own declarations of the parts of webpack's loader context that are used here. Rspack and Turbopack implement some of them.

interface LoaderContext {
  /** The path with the query. */
  readonly resource: string;
  readonly resourcePath: string;
  getOptions(): PluginOptions;
  callback(error: Error | null, text?: string, map?: SourceMap): void;
  emitError(error: Error): void;
  emitWarning(warning: Error): void;
  /** Exists only in webpack. It shows the position of an added error, and repeats the error until the file changes. */
  readonly _module?: { addError?(error: Error): void; addWarning?(warning: Error): void };
  readonly _compiler?: { readonly webpack: { readonly WebpackError: new (message: string) => Error } };
}

/**
 * Weaves the files that webpack, Rspack, or Turbopack builds. After an error, it still returns the text, in which the affected functions
 * refuse to run.
 */
function lockweave(this: LoaderContext, text: string, map?: SourceMap | string): void {
  const weave = fileWeaver(parser(), this.getOptions());
  const before = typeof map === "string" ? (JSON.parse(map) as SourceMap) : (map ?? undefined);
  const isComponent = COMPONENTS.test(this.resourcePath);
  if (isComponent && this.resource === this.resourcePath) {
    // With a query, the resource is a part of the component. The errors of the whole component have been reported already.
    for (const error of tagsInComponent(text)) report(this, error, "error");
  }
  const fileName = isComponent ? undefined : sourceFileOf(this.resource);
  if (fileName !== undefined)
    for (const error of tagsLostFrom(this.resourcePath, text)) report(this, error, "error");
  const woven = fileName === undefined ? undefined : weave(fileName, text, "esm or script");
  if (woven === undefined) {
    this.callback(null, text, before);
    return;
  }
  for (const error of woven.errors) report(this, error, "error");
  for (const warning of woven.warnings) report(this, warning, "warning");
  this.callback(null, woven.code, before === undefined ? woven.map : chained(woven.map, before));
}

function report(context: LoaderContext, finding: Finding, kind: "error" | "warning"): void {
  const { _module: module, _compiler: compiler } = context;
  const add = kind === "error" ? module?.addError : module?.addWarning;
  const message = formatFinding(shortPath(context.resourcePath), finding, kind);
  if (add === undefined || compiler === undefined) {
    const plainError = Object.assign(new Error(message), { stack: "" }); // The stack would only point into this file.
    if (kind === "error") context.emitError(plainError);
    else context.emitWarning(plainError);
    return;
  }
  const { line, column, length } = finding;
  const loc = { start: { line, column }, end: { line, column: column + length } };
  add.call(module, Object.assign(new compiler.webpack.WebpackError(message), { loc, hideStack: true }));
}

export = lockweave;
