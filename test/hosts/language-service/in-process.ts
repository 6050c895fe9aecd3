import { join } from "node:path";
import ts from "typescript";
import plugin = require("../../../transformer/hosts/language-service/plugin");
import type { Files } from "../project";

/** The virtual directory of the files, from which the type checker finds the runtime's types. */
const APP = join(__dirname, "app");
const pathOf = (file: string): string => `${APP}/${file}`;

/** The part of the standard library that the tests need. */
const LIBRARY = `interface Array<T> { [index: number]: T; readonly length: number }
interface Boolean {} interface CallableFunction {} interface Function {} interface IArguments {} interface NewableFunction {}
interface Number {} interface Object {} interface RegExp {} interface String {}
interface Error { message: string }
interface ErrorOptions { cause?: unknown }
declare var Error: { new (message?: string, options?: ErrorOptions): Error };
interface PromiseLike<T> { then<R>(done: (value: T) => R | PromiseLike<R>): PromiseLike<R> }
interface Promise<T> { then<R>(done: (value: T) => R | PromiseLike<R>): Promise<R> }
interface PromiseConstructor { resolve<T>(value: T): Promise<T>; new <T>(run: (resolve: (value: T) => void) => void): Promise<T> }
declare var Promise: PromiseConstructor;
`;

export interface Settings {
  /** The plugin's entry in tsconfig.json. */
  readonly entry?: object;
  /** All plugin entries in tsconfig.json. */
  readonly plugins?: unknown;
  readonly options?: ts.CompilerOptions;
  readonly cancellation?: ts.HostCancellationToken;
}

export interface Cursor {
  readonly file: string;
  readonly offset: number;
}

/** TypeScript's language service with the plugin, in this process and with files in memory. */
export class Editor {
  readonly service: ts.LanguageService;
  /** The language service without the plugin. */
  readonly plain: ts.LanguageService;
  readonly logged: string[] = [];
  readonly #texts = new Map<string, string>();
  #version = 0;

  /** @param files the files, with a `‸` at the cursor */
  constructor(files: Files, { entry = {}, plugins = [entry], options = {}, cancellation }: Settings = {}) {
    for (const [file, text] of Object.entries({ ...files, "library.d.ts": LIBRARY })) this.type(file, text);
    const host: ts.LanguageServiceHost = {
      getScriptFileNames: () =>
        [...this.#texts.keys()].filter((path) => path.endsWith("ts") && !path.includes("node_modules")),
      getScriptVersion: () => String(this.#version),
      getScriptSnapshot: (path) => {
        const text = this.#texts.get(path);
        return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text.replace("‸", ""));
      },
      getCompilationSettings: () => ({
        noLib: true,
        types: [],
        strict: true,
        target: ts.ScriptTarget.ES2022,
        module: ts.ModuleKind.ESNext,
        moduleResolution: ts.ModuleResolutionKind.Bundler,
        plugins: plugins as ts.PluginImport[],
        ...options,
      }),
      getCurrentDirectory: () => APP,
      getDefaultLibFileName: () => pathOf("library.d.ts"),
      fileExists: (path) => this.#texts.has(path),
      readFile: (path) => this.#texts.get(path)?.replace("‸", ""),
      directoryExists: () => true,
      // Like an editor on this machine. Without it, paths with capital letters would not match.
      useCaseSensitiveFileNames: () => ts.sys.useCaseSensitiveFileNames,
      ...(cancellation && { getCancellationToken: () => cancellation }),
    };
    this.plain = ts.createLanguageService(host);
    const info = {
      languageService: this.plain,
      languageServiceHost: host,
      config: entry,
      project: { projectService: { logger: { info: (line: string) => void this.logged.push(line) } } },
    };
    this.service = plugin({ typescript: ts }).create(info as unknown as ts.server.PluginCreateInfo);
  }

  /** Sets the text of the file. */
  type(file: string, text: string): void {
    this.#texts.set(pathOf(file), text);
    this.#version += 1;
  }

  get cursor(): Cursor {
    for (const [file, text] of this.#texts) {
      if (text.includes("‸")) return { file, offset: text.indexOf("‸") };
    }
    throw new Error("There is no cursor");
  }

  pathOf(file: string): string {
    return pathOf(file);
  }

  textOf(file: string, { start, length }: ts.TextSpan): string {
    return (this.#texts.get(file) ?? "").replace("‸", "").slice(start, start + length);
  }

  /** Returns the file's text with the changes applied. */
  changed(file: string, changes: readonly ts.TextChange[]): string {
    let text = (this.#texts.get(file) ?? "").replace("‸", "");
    for (const { span, newText } of changes.toSorted((a, b) => b.span.start - a.span.start)) {
      text = text.slice(0, span.start) + newText + text.slice(span.start + span.length);
    }
    return text;
  }

  /** Returns the suggestions at the cursor, without TypeScript's own. */
  suggestions(): ts.CompletionEntry[] {
    const { file, offset } = this.cursor;
    const theirs = this.plain.getCompletionsAtPosition(file, offset, {})?.entries.length ?? 0;
    const all = this.service.getCompletionsAtPosition(file, offset, {})?.entries ?? [];
    return all.slice(0, all.length - theirs);
  }

  /** Returns the hover text at the cursor. */
  hover(): { readonly at: string; readonly title: string; readonly text: string } | undefined {
    const { file, offset } = this.cursor;
    const found = this.service.getQuickInfoAtPosition(file, offset);
    return (
      found && {
        at: this.textOf(file, found.textSpan),
        title: ts.displayPartsToString(found.displayParts),
        text: ts.displayPartsToString(found.documentation),
      }
    );
  }

  /** Returns the positions that a rename at the cursor changes, with the text before them. */
  renamed(): string[] {
    const { file, offset } = this.cursor;
    return (this.service.findRenameLocations(file, offset, false, false, {}) ?? [])
      .map(({ fileName, textSpan: { start, length } }) => {
        const before = this.textOf(fileName, { start: Math.max(0, start - 6), length: Math.min(6, start) });
        return `${fileName.replace(pathOf(""), "")}: ${before}[${this.textOf(fileName, { start, length })}]`;
      })
      .toSorted();
  }

  /** Returns the errors as their codes and the text at their positions. */
  errors(file = "pay.ts"): string[] {
    const path = pathOf(file);
    return this.service
      .getSemanticDiagnostics(path)
      .map(({ code, start = 0, length = 0 }) => `${code} ${this.textOf(path, { start, length })}`);
  }

  /** Returns each fix for Lockweave's errors as its description and the resulting text. */
  fixes(file = "pay.ts"): [description: string, text: string][] {
    const path = pathOf(file);
    const found = this.service.getSemanticDiagnostics(path).filter(({ source }) => source === "lockweave");
    return found.flatMap(({ code, start = 0, length = 0 }) =>
      this.service
        .getCodeFixesAtPosition(path, start, start + length, [code], {}, {})
        .map(({ description, changes }): [string, string] => [
          description,
          this.changed(path, changes[0]?.textChanges ?? []),
        ]),
    );
  }
}
