import { readFileSync, statSync } from "node:fs";
import { isAbsolute } from "node:path";
import Module from "node:module";
import vm from "node:vm";
import { parser } from "../../parser/parser";
import { tagsOfSource } from "../../read/declared-tags";
import { mayHaveTags } from "../../read/spelling";
import { problem } from "../../text/problems";
import { locksIn } from "../../verify/locks/locks";
import { tagError } from "../one-file/file-error";
import { findingIn } from "../one-file/weaver";
import { tagsOfFunctionsIn } from "../bundlers/lost-tags";
import { pathOf } from "./load-file";
import { COMPILE } from "./compilers/compiler";
import { hookFor } from "./compilers/other-hook";
import { isLoading } from "./require-hook";
import { isScript, shownPath } from "./tagged-file";
import { isInstalled } from "../../resolve/installed";

// Tools such as jiti compile a file themselves, and run it under the name of the file, with `node:vm` or the `_compile` of a module. No hook
// of `import` or `require` sees that code.

type Run = (code: string, ...others: unknown[]) => unknown;

const RUNS = ["runInThisContext", "runInContext", "runInNewContext", "compileFunction"] as const;

/** Makes `node:vm` and modules refuse the code of a tagged file if it lacks a lock. */
export function hookVm(): void {
  const { prototype } = Module as unknown as { readonly prototype: Record<typeof COMPILE, Run> };
  const compile = prototype[COMPILE];
  prototype[COMPILE] = function (code, path, ...others) {
    if (typeof path === "string" && !isLoading(path)) refuseUnlockedCode(code, path);
    return compile.call(this, code, path, ...others);
  };
  const functions = vm as unknown as Record<(typeof RUNS)[number], Run> & { Script: typeof vm.Script };
  for (const name of RUNS) {
    const run = functions[name];
    functions[name] = (code, ...others) => {
      refuseUnlockedCode(code, others.at(-1));
      return run(code, ...others);
    };
  }
  functions.Script = class Script extends vm.Script {
    constructor(code: string, options?: vm.ScriptOptions | string) {
      refuseUnlockedCode(code, options);
      super(code, options);
    }
  };
}

function refuseUnlockedCode(code: unknown, options: unknown): void {
  const path = fileNamedIn(options);
  if (path === undefined || typeof code !== "string") return;
  const text = readFileSync(path, "utf8");
  if (!mayHaveTags(text)) return;
  const ts = parser();
  const { locks, broken } = locksIn(ts, path, code);
  // Tools that measure coverage add statements between the steps of a lock, but the lock is there.
  const sites = new Set([...locks.map(({ site }) => site), ...broken]);
  const present = tagsOfFunctionsIn(path, code, tagsOfSource(ts, path, text)) ?? [];
  const unlocked = present.filter(({ name = "" }) => !sites.has(name));
  if (unlocked.length === 0) return;
  const hook = hookFor(path);
  const kind = hook === undefined ? "tagCompiledElsewhere" : "tagLostInHook";
  const findings = unlocked.map((tag) =>
    findingIn(text, problem(kind, tag, tag.name ?? tag.flag, `@${tag.tag}`, hook ?? "")),
  );
  throw tagError(shownPath(path), findings);
}

/** Returns the path of the user's own file under whose name the code runs. */
function fileNamedIn(options: unknown): string | undefined {
  const { filename }: { readonly filename?: unknown } =
    typeof options === "string" ? { filename: options } : (Object(options) as object);
  if (typeof filename !== "string") return undefined;
  const path = isAbsolute(filename) ? filename : pathOf(filename);
  if (path === undefined || !isScript(path) || isInstalled(path)) return undefined;
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true ? path : undefined;
}
