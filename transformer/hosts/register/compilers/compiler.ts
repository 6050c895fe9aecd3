import type { WovenFile } from "../../one-file/weaver";
import type { Format } from "./format";

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
}
