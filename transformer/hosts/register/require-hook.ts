import Module from "node:module";
import { basename } from "node:path";
import { loadFile } from "./load-file";
import { compileRequired, importsAreUnseen } from "./required-modules";

export const COMPILE = "_compile";

/** The parts of Node's `Module` that hooks of `require` commonly use. */
interface Loading {
  readonly id: string;
  load(path: string): void;
  [COMPILE]: (code: string, path: string, format?: string) => unknown;
}

type Extensions = Record<string, ((module: Loading, path: string) => void) | undefined>;

/**
 * Makes `require` load tagged files with {@link loadFile}. Hosts register their compilers as extensions, each replacing the one before.
 * `load` looks up the extension, so this hook works in any order of registration.
 */
export function hookRequire(): void {
  const { prototype, _extensions: extensions } = Module as unknown as {
    readonly prototype: Loading;
    readonly _extensions: Extensions;
  };
  if (importsAreUnseen) hookCompile(prototype);
  const { load } = prototype;
  prototype.load = function (path) {
    const loaded = loadFile(path);
    if (loaded === undefined) {
      loading.add(path);
      try {
        return load.call(this, path);
      } finally {
        loading.delete(path);
      }
    }
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

const loading = new Set<string>();

/** Whether `require` is loading the file, and it has no tags. */
export function isLoading(path: string): boolean {
  return loading.has(path);
}

/** Checks the imports of an ES module before Node compiles it. Hooks that turn it into CommonJS have done so by then. */
function hookCompile(prototype: Loading): void {
  const { [COMPILE]: compile } = prototype;
  prototype[COMPILE] = function (code, path, format) {
    const run = (): unknown => compile.call(this, code, path, format);
    const isEntry = this.id === "."; // Node imports an ES module that is the entry.
    return isEntry ? run() : compileRequired(path, code, format, run);
  };
}

/**
 * Returns the longest extension, which Node looks up first: `.service.ts` for `pay.service.ts`. Node loads a file without an extension like
 * `.js`.
 */
function longestExtension(path: string): string {
  const name = basename(path);
  const dot = name.indexOf(".", 1);
  return dot === -1 ? ".js" : name.slice(dot);
}
