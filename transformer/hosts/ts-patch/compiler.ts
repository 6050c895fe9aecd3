import type * as TS from "typescript";

/** TypeScript, as ts-patch hands it over. */
export type Compiler = typeof TS & {
  readonly originalCreateProgram?: typeof TS.createProgram;
  /** TypeScript's own, which its declarations leave out. */
  getEmitModuleKind(options: TS.CompilerOptions): TS.ModuleKind;
};
