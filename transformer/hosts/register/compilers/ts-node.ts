import { createRequire } from "node:module";
import { mapToDisk } from "../../../text/source-map";
import type { Compiler } from "./compiler";

/** The ts-node that is registered in this thread. */
interface TsNode {
  compile(code: string, path: string): string;
  ignored(path: string): boolean;
}

const REGISTERED = Symbol.for("ts-node.register.instance");

export function registeredTsNode(path: string): Compiler | undefined {
  const service = (process as { readonly [REGISTERED]?: TsNode })[REGISTERED];
  return service === undefined || service.ignored(path) ? undefined : compilerOf(service);
}

function compilerOf(service: TsNode): Compiler {
  return {
    formatOfModules: "commonjs",
    compile({ code, source }, path, format) {
      const output = mapToDisk(path, service.compile(code, path), () => source);
      correctStackTraces(path, output);
      return { format, source: output };
    },
  };
}

const outputs = new Map<string, string>();

/** Makes stack traces lead to the files on disk. ts-node maps them by its own output, whose source maps lead to the woven text. */
function correctStackTraces(path: string, output: string): void {
  if (outputs.size === 0) {
    const tsNode =
      Object.keys(require.cache).find((file) => /[\\/]ts-node[\\/]dist[\\/]/.test(file)) ?? __filename;
    const { install } = createRequire(tsNode)("@cspotcode/source-map-support") as SourceMapSupport;
    install({ environment: "node", retrieveFile: (name) => outputs.get(name) ?? "" });
  }
  outputs.set(path, output);
}

interface SourceMapSupport {
  install(options: { readonly environment: "node"; retrieveFile(name: string): string }): void;
}
