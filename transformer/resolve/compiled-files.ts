import type * as TS from "typescript";

/** The files of a project as its compiler resolves them, with `paths`. Node may load other files: see `loadedFromPackage`. */
export interface CompiledFiles {
  /** The source files that this build itself compiles, by their names. */
  readonly files: ReadonlyMap<string, TS.SourceFile>;
  readonly specifiersIn: (file: TS.SourceFile) => readonly TS.StringLiteralLike[];
  /** Returns the name of the imported file. */
  readonly resolve: (specifier: TS.StringLiteralLike, file: TS.SourceFile) => string | undefined;
  /** Returns the path of the JavaScript that this build emits for the source. Its extension does not matter. */
  readonly outputOf: (fileName: string) => string;
}
