import childProcess from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import module from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { problem } from "../../text/problems";
import { fileError } from "../one-file/file-error";
import { pathOf } from "./load-file";
import { shownPath } from "./tagged-file";
import { isInstalled } from "../../resolve/installed";
import { hookWorkers, type WorkerKind } from "./workers";

const HOOK = "lockweave/register";

/** Makes workers of Deno, and processes that it starts, load the hook, which they do not inherit. */
export function hookDenoWorkers(): void {
  const { Worker: original } = globalThis as unknown as { Worker: { readonly prototype: object } };
  const stop = hookWorkers((kind, [entry, options]) => [startOf(kind, entry, options), options]);
  guard(original.prototype, stop);
  passToProcesses();
  const fork = childProcess.fork as (file: unknown, ...others: unknown[]) => childProcess.ChildProcess;
  childProcess.fork = (file: unknown, ...others: unknown[]) => {
    const options = others.find((other) => Object(other) === other && !Array.isArray(other));
    return fork(
      file,
      others.find(Array.isArray) ?? [],
      withHook(Object(options) as childProcess.ForkOptions),
    );
  };
  module.syncBuiltinESMExports();
}

/**
 * Calls the function before each use of a web worker. Deno emits no event for a worker whose class was stored before the hook, but nobody can
 * talk to a worker without these members.
 */
function guard(prototype: object, stop: (worker: object) => void): void {
  for (const name of ["addEventListener", "postMessage", "onmessage", "onmessageerror", "onerror"]) {
    const { value, get, set, ...flags } = memberOf(prototype, name) ?? {};
    Object.defineProperty(prototype, name, {
      ...flags,
      configurable: true,
      ...(typeof value === "function" && { value: guarded(value as Method, stop) }),
      ...(set !== undefined && { get, set: guarded(set, stop) }),
    });
  }
}

type Method = (this: object, ...args: unknown[]) => unknown;

function guarded(method: Method, stop: (worker: object) => void): Method {
  return function (...args) {
    stop(this);
    return method.apply(this, args);
  };
}

function memberOf(object: object | null, name: string): PropertyDescriptor | undefined {
  if (object === null) return undefined;
  return (
    Object.getOwnPropertyDescriptor(object, name) ?? memberOf(Object.getPrototypeOf(object) as object, name)
  );
}

/** Processes inherit the environment, also from `spawn()`, from `Deno.Command`, and from a `fork` that was stored before the hook. */
function passToProcesses(): void {
  try {
    process.env["NODE_OPTIONS"] = optionsWithHook(process.env["NODE_OPTIONS"]);
  } catch {
    // Deno runs without the permission to change its environment.
  }
}

function withHook(options: childProcess.ForkOptions): childProcess.ForkOptions {
  const { NODE_OPTIONS: before, ...env } = options.env ?? process.env;
  return { ...options, env: { ...env, NODE_OPTIONS: optionsWithHook(before) } };
}

/** Deno ignores `execArgv`, but takes `--require` from `NODE_OPTIONS`. */
function optionsWithHook(before = ""): string {
  const hook = `--require ${JSON.stringify(require.resolve(HOOK))}`;
  return before.includes(hook) ? before : `${hook} ${before}`.trimEnd();
}

/** Returns a module that loads the hook before the entry of a worker. Code that is not in a file needs no hook, and starts as it is. */
function startOf(kind: WorkerKind, entry: unknown, options: { readonly eval?: unknown } = {}): unknown {
  const url = urlOf(kind, entry);
  const path = url === undefined || options.eval === true ? undefined : pathOf(url.replace(/[?#].*$/s, ""));
  if (url === undefined || path === undefined || isInstalled(path) || !isFile(path)) return entry;
  if (USES_ITS_PLACE.test(readFileSync(path, "utf8"))) {
    const { code, message } = problem("workerUsesItsPlace", { start: 0, end: 0 });
    throw fileError(`${shownPath(path)}: error ${code}: ${message}`);
  }
  const start = moduleUrl(
    `import ${JSON.stringify(pathToFileURL(require.resolve(HOOK)).href)};
const early = [];
const keep = (event) => { event.stopImmediatePropagation(); early.push(event); };
addEventListener("message", keep);
globalThis[Symbol.for(${JSON.stringify(STARTED)})] = () => {
  removeEventListener("message", keep);
  for (const { data, ports } of early) setTimeout(() => dispatchEvent(new MessageEvent("message", { data, ports })));
};
await import(${JSON.stringify(moduleUrl(`import ${JSON.stringify(url)}; import ${JSON.stringify(FLUSH)};`))});`,
  );
  return kind === "web" ? start : new URL(start);
}

/** Matches what the module that loads the hook would change for the entry of a worker. */
const USES_ITS_PLACE = /\bimport\.meta\.main\b|\bDeno\.mainModule\b/;

const STARTED = "lockweave.worker-started";

/**
 * Runs after the first synchronous part of the entry, which may listen for messages. A module does not wait for the top-level `await` of
 * its sibling. Messages that arrived before would be lost.
 */
const FLUSH = moduleUrl(`globalThis[Symbol.for(${JSON.stringify(STARTED)})]();`);

function moduleUrl(code: string): string {
  return `data:text/javascript,${encodeURIComponent(code)}`;
}

/** Returns the URL of the entry. In `node:worker_threads`, a string is a path. */
function urlOf(kind: WorkerKind, entry: unknown): string | undefined {
  if (entry instanceof URL) return entry.href;
  if (typeof entry !== "string") return undefined;
  if (kind === "web" || /^[a-z][a-z\d+.-]+:/i.test(entry)) return entry;
  return pathToFileURL(resolve(entry)).href;
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
