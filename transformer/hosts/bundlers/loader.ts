import { fileWeaver, shown, type Finding, type PluginOptions } from "../one-file/weaver";
import { chained, type SourceMap } from "./chained";
import { COMPONENTS, tagsInComponent } from "./components";
import { tagsLostFrom } from "./lost-tags";
import { parser } from "../../parser/parser";
import { shortPath, sourceFileOf } from "./source-files";

// The parts of a loader's context that are used here, in words of our own: those of webpack, and what Rspack and
// Turbopack have of them.

interface LoaderContext {
  /** With the query. */
  readonly resource: string;
  readonly resourcePath: string;
  getOptions(): PluginOptions;
  callback(error: Error | null, text?: string, map?: SourceMap): void;
  emitError(error: Error): void;
  emitWarning(warning: Error): void;
  /** webpack's, which shows the place of an error that is added here, and shows it again until the file has changed. */
  readonly _module?: { addError?(error: Error): void; addWarning?(warning: Error): void };
  readonly _compiler?: { readonly webpack: { readonly WebpackError: new (message: string) => Error } };
}

/** Weaves what webpack, Rspack or Turbopack builds. The text goes on with the errors in it: what they concern refuses to run. */
function lockweave(this: LoaderContext, text: string, map?: SourceMap | string): void {
  const weave = fileWeaver(parser(), this.getOptions());
  const before = typeof map === "string" ? (JSON.parse(map) as SourceMap) : (map ?? undefined);
  const isComponent = COMPONENTS.test(this.resourcePath);
  if (isComponent && this.resource === this.resourcePath) {
    // With a query it is a part of it, of which all is told already.
    for (const error of tagsInComponent(text)) tell(this, error, "error");
  }
  const fileName = isComponent ? undefined : sourceFileOf(this.resource);
  if (fileName !== undefined)
    for (const error of tagsLostFrom(this.resourcePath, text)) tell(this, error, "error");
  const woven = fileName === undefined ? undefined : weave(fileName, text, "esm or script");
  if (woven === undefined) {
    this.callback(null, text, before);
    return;
  }
  for (const error of woven.errors) tell(this, error, "error");
  for (const warning of woven.warnings) tell(this, warning, "warning");
  this.callback(null, woven.code, before === undefined ? woven.map : chained(woven.map, before));
}

function tell(context: LoaderContext, finding: Finding, kind: "error" | "warning"): void {
  const { _module: module, _compiler: compiler } = context;
  const add = kind === "error" ? module?.addError : module?.addWarning;
  const message = shown(shortPath(context.resourcePath), finding, kind);
  if (add === undefined || compiler === undefined) {
    const said = Object.assign(new Error(message), { stack: "" }); // It would lead into this file.
    if (kind === "error") context.emitError(said);
    else context.emitWarning(said);
    return;
  }
  const { line, column, length } = finding;
  const loc = { start: { line, column }, end: { line, column: column + length } };
  add.call(module, Object.assign(new compiler.webpack.WebpackError(message), { loc, hideStack: true }));
}

export = lockweave;
