import type * as TS from "typescript";

/** TypeScript as ts-patch passes it to plugins. */
export type Compiler = typeof TS & {
  readonly originalCreateProgram?: typeof TS.createProgram;
  /** An internal function of TypeScript that its declarations omit. */
  getEmitModuleKind(options: TS.CompilerOptions): TS.ModuleKind;
};
