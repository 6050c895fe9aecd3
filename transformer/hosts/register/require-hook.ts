import Module from "node:module";
import { basename } from "node:path";
import { COMPILE, type Loading } from "./compilers/compiler";
import { hookOf, type Handler } from "./compilers/other-hook";
import { loadFile } from "./load-file";
import { compileRequired, importsAreUnseen } from "./required-modules";

type Extensions = Record<string, Handler | undefined>;

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
    const loaded = loadFile(path, undefined, () => hookOf(this, path, handlerOf(extensions, path)));
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
      if (loaded.run !== undefined) loaded.run(module);
      else prototype[COMPILE].call(module, loaded.source, path, loaded.format);
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

/** Returns the function that Node calls to load the file. */
function handlerOf(extensions: Extensions, path: string): Handler | undefined {
  const [, ...endings] = basename(path).slice(1).split(".");
  const registered = endings
    .map((_, index) => `.${endings.slice(index).join(".")}`)
    .find((ending) => ending in extensions);
  return extensions[registered ?? ".js"];
}
