import type { WovenFile } from "../../one-file/weaver";
import type { Format } from "./format";

export const COMPILE = "_compile";

/** The parts of Node's `Module` that hooks of `require` commonly use. */
export interface Loading {
  readonly id: string;
  readonly filename: string;
  readonly children: readonly Loading[];
  load(path: string): void;
  [COMPILE]: (code: string, path: string, format?: string) => unknown;
}

/** The compiler that turns a tagged file into JavaScript. It is the same one that compiles all other files of this process. */
export interface Compiler {
  /** The format in which it runs ES module syntax in packages that do not declare a type. */
  readonly formatOfModules: Format;
  compile(file: WovenFile, path: string, format: Format): Compiled;
}

/** The code that Node runs. */
export interface Compiled {
  /** Node's name for the format: `module`, or `module-typescript` if Node strips the types. */
  readonly format: string;
  /** The code with a source map that leads to the file on disk. */
  readonly source: string;
  /** Compiles and runs the module, if the hook of another package must do that. */
  readonly run?: (module: Loading) => void;
}
