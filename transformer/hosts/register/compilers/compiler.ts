import type { WovenFile } from "../../one-file/weaver";
import type { Format } from "../format";

/** What makes JavaScript of a tagged file: what does so of all others in this process. */
export interface Compiler {
  /** How it runs ES modules of packages that do not say what they are. */
  readonly formatOfModules: Format;
  compile(file: WovenFile, path: string, format: Format): Compiled;
}

/** What Node is to run. */
export interface Compiled {
  /** As Node calls it: `module`, or `module-typescript` of what Node is to strip of its types. */
  readonly format: string;
  /** With its source map, which leads to the file on disk. */
  readonly source: string;
}
