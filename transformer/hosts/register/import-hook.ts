import module from "node:module";
import { pathToFileURL } from "node:url";
import { isReading } from "./compilers/other-hook";
import { jsonRequiredInDeno } from "./deno-json";
import { loadFile, pathOf } from "./load-file";

/** Newer versions of Node run hooks in the thread that loads the module, and older ones run them in a separate thread. */
interface Hookable {
  register(...hooks: unknown[]): void;
  registerHooks?: RegisterHooks;
}

type RegisterHooks = (hooks: { readonly load?: LoadHook }) => { deregister(): void };

type LoadHook = <Result>(
  url: string,
  context: { readonly format?: string | null },
  next: (url: string, context: object) => Result,
) => Result | { readonly format: string; readonly source: string; readonly shortCircuit: true };

/** Makes `import` load tagged files with {@link loadFile}, even if other hooks are registered later. */
export function hookImport(): void {
  const hookable = module as unknown as Hookable;
  const { register, registerHooks } = hookable;
  if (registerHooks === undefined || !worksWithHookThreads(process.versions.node)) {
    const ours = pathToFileURL(require.resolve("lockweave/register/thread"));
    const registerOurs = (): void => register(ours, ours); // Some hooks resolve only the imports of files.
    registerOurs();
    hookable.register = (...hooks) => {
      register(...hooks);
      registerOurs(); // Node calls the hook that was registered last first.
    };
  } else {
    let ours = registerHooks({ load });
    hookable.registerHooks = (hooks) => {
      const theirs = registerHooks(hooks);
      ours.deregister();
      ours = registerHooks({ load });
      return theirs;
    };
  }
  module.syncBuiltinESMExports();
}

/** Whether synchronous hooks work while others have hooks in a separate thread. Before these versions, that broke imports of CommonJS. */
export function worksWithHookThreads(version: string): boolean {
  const [major, minor, patch] = version.split(".").map(Number) as [number, number, number];
  const first = FIRST_BY_MAJOR[major];
  if (first === undefined) return major > 25;
  return minor > first.minor || (minor === first.minor && patch >= first.patch);
}

const FIRST_BY_MAJOR: Readonly<Record<number, { readonly minor: number; readonly patch: number }>> = {
  22: { minor: 22, patch: 3 },
  24: { minor: 11, patch: 1 },
  25: { minor: 1, patch: 0 },
};

const load: LoadHook = (url, context, next) => {
  const path = pathOf(url);
  const loaded =
    path === undefined || isReading(path)
      ? undefined
      : (jsonRequiredInDeno(path, context) ?? loadFile(path, context.format));
  return loaded === undefined ? next(url, context) : { ...loaded, shortCircuit: true };
};
