import { readFileSync } from "node:fs";
import { isAbsolute } from "node:path";
import { filesOnStack, packageOf } from "../../stack";
import { COMPILE, type Compiler, type Loading } from "./compiler";

// Packages such as `@babel/register` hook `require` in a common way. Their handler replaces the `_compile` of a module. Then Node's handler
// reads the file, and passes its text to that function, which compiles it and calls Node's `_compile`.

/** What Node calls to load a file with a certain extension. */
export type Handler = (module: Loading, path: string) => void;

const reading = new Set<string>();
/** The files of the hooks, by the file that they compile. */
const hooks = new Map<string, string>();

/** Whether Node reads the file for a hook, so it must get the text on disk. */
export function isReading(path: string): boolean {
  return reading.has(path);
}

/** Returns the package whose hook compiles the file. */
export function hookFor(path: string): string | undefined {
  const file = hooks.get(path);
  return file && nameOf(file);
}

/** Returns the hook of another package that compiles the file, as a compiler. */
export function hookOf(module: Loading, path: string, handler: Handler | undefined): Compiler | undefined {
  const file = handler === undefined ? undefined : compilingFile(module, path, handler);
  if (file === undefined || handler === undefined) return undefined;
  hooks.set(path, file);
  return {
    formatOfModules: "commonjs",
    compile: ({ code: source }, _, format) => ({
      format,
      source,
      run: (loaded) => runThrough(handler, loaded, path, source),
    }),
  };
}

/** Returns the file of the function that reads or replaces `_compile` first, unless that is Node's own. */
function compilingFile(module: Loading, path: string, handler: Handler): string | undefined {
  let file: string | undefined;
  const probe = (): never => {
    [file] = filesOnStack(probe);
    throw new Error("Nothing is loaded yet");
  };
  reading.add(path);
  try {
    handler(Object.create(module, { [COMPILE]: { get: probe, set: probe } }) as Loading, path);
  } catch {
    // Node may refuse the file, too.
  } finally {
    reading.delete(path);
  }
  return file !== undefined && (isAbsolute(file) || file.startsWith("file:")) ? file : undefined;
}

/** Returns the package of a hook. Most packages hook `require` with `pirates`, so the package that loaded that counts. */
function nameOf(file: string): string {
  const modules = Object.values(require.cache) as unknown as readonly Loading[];
  const own = packageOf(file);
  const user = modules.find(
    ({ filename, children }) =>
      packageOf(filename) !== own && children.some((child) => child.filename === file),
  );
  return packageOf(user?.filename ?? file) ?? file;
}

/** Runs a module through a hook, which gets the woven text instead of the text on disk. */
function runThrough(handler: Handler, module: Loading, path: string, woven: string): void {
  const text = withoutMark(readFileSync(path, "utf8"));
  let compile = module[COMPILE];
  reading.add(path);
  Object.defineProperty(module, COMPILE, {
    configurable: true,
    get: () => {
      const current = compile;
      return (code: string, ...others: [path: string]): unknown => {
        const isOnDisk = reading.delete(path) && withoutMark(code) === text;
        return current.call(module, isOnDisk ? woven : code, ...others);
      };
    },
    set: (replaced: Loading[typeof COMPILE]) => {
      compile = replaced;
    },
  });
  try {
    handler(module, path);
  } finally {
    reading.delete(path);
    Reflect.deleteProperty(module, COMPILE);
  }
}

function withoutMark(text: string): string {
  return text.replace(/^\uFEFF/, "");
}
