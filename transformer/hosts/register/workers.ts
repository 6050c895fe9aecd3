import module from "node:module";
import { problem } from "../../text/problems";
import { fileError } from "../one-file/file-error";

// Workers of Bun and Deno do not inherit the hook. Hosts import the hook before any other code, so all code gets the workers of this file.

export type WorkerArguments = readonly [entry: unknown, options?: object | undefined];

type WorkerClass = new (...args: WorkerArguments) => object;

/** Whether a worker is a web worker or one of `node:worker_threads`. */
export type WorkerKind = "web" | "node";

/**
 * Changes the arguments of each worker that starts. Stops a worker with an error if its class was imported before.
 *
 * @param change returns the arguments that make the worker load the hook
 * @returns a function that stops a worker with an error, unless it loads the hook
 */
export function hookWorkers(
  change: (kind: WorkerKind, args: WorkerArguments) => WorkerArguments,
): (worker: object) => void {
  const hooked = new WeakSet<object>();
  const withHook = (kind: WorkerKind, original: WorkerClass): WorkerClass =>
    new Proxy(original, {
      construct(target, args, newTarget: WorkerClass) {
        const worker = Reflect.construct(target, change(kind, args as unknown as WorkerArguments), newTarget);
        hooked.add(worker);
        return worker;
      },
    });
  const threads = require("node:worker_threads") as { Worker: WorkerClass };
  const web = globalThis as unknown as { Worker: WorkerClass };
  threads.Worker = withHook("node", threads.Worker);
  web.Worker = withHook("web", web.Worker);
  module.syncBuiltinESMExports();
  const stop = (worker: object): void => {
    if (hooked.has(worker)) return;
    void (worker as { terminate(): unknown }).terminate();
    const { code, message } = problem("workerNotSeen", { start: 0, end: 0 });
    throw fileError(`error ${code}: ${message}`);
  };
  // Bun emits this event for each worker, and Deno only for those of `node:worker_threads`.
  process.on("worker", stop);
  return stop;
}
