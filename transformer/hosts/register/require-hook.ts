import Module from "node:module";
import { basename } from "node:path";
import { loadFile } from "./load-file";

const COMPILE = "_compile";

/** Node's own, as far as it is known to all who hook into `require`. */
interface Loading {
  load(path: string): void;
  readonly [COMPILE]: (code: string, path: string, format?: string) => void;
}

type Extensions = Record<string, ((module: Loading, path: string) => void) | undefined>;

/**
 * Lets `require` load tagged files as {@link loadFile} makes them. Hosts put their compilers among the extensions, each
 * over the ones before; `load` asks those, so it does not matter who came first.
 */
export function hookRequire(): void {
  const { prototype, _extensions: extensions } = Module as unknown as {
    readonly prototype: Loading;
    readonly _extensions: Extensions;
  };
  const { load } = prototype;
  prototype.load = function (path) {
    const loaded = loadFile(path);
    if (loaded === undefined) return load.call(this, path);
    const extension = longestExtension(path);
    const before = Object.getOwnPropertyDescriptor(extensions, extension);
    let isOurs = true;
    const restore = (): void => {
      if (!isOurs) return;
      isOurs = false;
      if (before === undefined) Reflect.deleteProperty(extensions, extension);
      else Object.defineProperty(extensions, extension, before);
    };
    const run = (module: Loading): void => {
      restore();
      prototype[COMPILE].call(module, loaded.source, path, loaded.format);
    };
    Object.defineProperty(extensions, extension, { value: run, configurable: true });
    try {
      return load.call(this, path);
    } finally {
      restore();
    }
  };
}

/** `.service.ts` of `pay.service.ts`: the first that Node looks for. What has none is loaded as if it had `.js`. */
function longestExtension(path: string): string {
  const name = basename(path);
  const dot = name.indexOf(".", 1);
  return dot === -1 ? ".js" : name.slice(dot);
}
