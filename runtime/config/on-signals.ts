import { constants } from "node:os";
import { isMainThread } from "node:worker_threads";
import type { Clock } from "../base/clock";
import { LockOptionError } from "../base/errors";
import type { Logger } from "../base/logger";
import { readFrom } from "../base/options";
import { rooted } from "../base/root-context";
import { formatValue } from "../base/format-value";

/** Signals that no listener can catch. */
const CANNOT_BE_CAUGHT = new Set(["SIGKILL", "SIGSTOP"]);

/** @throws {LockOptionError} unless all of them are names of signals that a process can listen to */
export function checkSignals(signals: unknown): readonly NodeJS.Signals[] {
  const isSignal = (name: unknown): name is NodeJS.Signals =>
    typeof name === "string" && Object.hasOwn(constants.signals, name) && !CANNOT_BE_CAUGHT.has(name);
  const names = readFrom(
    "The option `shutdownOn`",
    () => Array.isArray(signals) && [...(signals as unknown[])],
  );
  if (names !== false && names.every(isSignal)) return [...new Set(names)];
  throw new LockOptionError(
    `Expected \`shutdownOn\` to be a list of signals such as ["SIGTERM", "SIGINT"], got ${formatValue(signals)}`,
  );
}

/** Most applications have started by then, and their own listeners with them. */
const STARTED_AFTER_MS = 10_000;

/**
 * Calls `shutdown` at the first of the signals. If others listen to that signal, too, they decide whether the process then ends. Otherwise
 * it ends by the signal, as it would have without us. As process 1, it exits with the code of the signal. A second signal during `shutdown`
 * ends the process immediately, unless others listen to it, because our listeners are gone by then.
 *
 * Another listener may end the process while `shutdown` still waits for bodies. So this function warns of other listeners. It checks for
 * them now, 10 s later when most applications have started, and at the signal.
 *
 * In a worker thread, it warns that no signal arrives there.
 *
 * @returns a function that removes the listeners
 */
export function shutdownOnSignals(
  signals: readonly NodeJS.Signals[],
  shutdown: () => Promise<void>,
  {
    clock,
    logger,
    isInWorker = !isMainThread,
  }: { readonly clock: Clock; readonly logger: Logger; readonly isInWorker?: boolean },
): () => void {
  const unwarned = new Set(signals);
  const warnOfOthers = (): void => {
    const shared = [...unwarned].filter((signal) =>
      process.listeners(signal).some((other) => other !== onSignal),
    );
    for (const signal of shared) unwarned.delete(signal);
    if (shared.length > 0) logger.warn(otherListenersWarning(shared));
  };
  const stopListening = (): void => {
    cancelCheck();
    for (const signal of signals) process.off(signal, onSignal);
  };
  const onSignal = rooted(async (signal: NodeJS.Signals): Promise<void> => {
    const isOnlyListener = process.listenerCount(signal) === 1;
    warnOfOthers();
    // This comes first, since process 1 ignores a signal while nobody listens to it.
    if (process.pid === 1) for (const each of signals) process.on(each, endFirstProcess);
    stopListening();
    try {
      await shutdown();
    } finally {
      if (isOnlyListener) process.kill(process.pid, signal);
    }
  });
  if (signals.length === 0) return () => {};
  if (isInWorker) logger.warn(IN_WORKER);
  warnOfOthers();
  const cancelCheck = clock.afterInBackground(STARTED_AFTER_MS, warnOfOthers);
  for (const signal of signals) process.on(signal, onSignal);
  return stopListening;
}

/** Does what a signal does by default. Process 1, which is how a container runs its program, has no such default. */
function endFirstProcess(signal: NodeJS.Signals): void {
  if (process.listenerCount(signal) === 1) process.exit(128 + constants.signals[signal]);
}

const IN_WORKER =
  "configure({ shutdownOn }): signals do not reach this worker thread, so its bodies are cut off when the process ends. Fix: leave out shutdownOn here, listen to the signal in the main thread, and let it tell the worker to call shutdown()";

function otherListenersWarning(signals: readonly NodeJS.Signals[]): string {
  const names = signals.join(" and ");
  return `configure({ shutdownOn }): another listener for ${names} exists. If it ends the process while bodies run, their keys stay held until their lock time ends. Fix: leave ${names} out of shutdownOn, and make that listener wait: process.on("${signals[0]}", async () => { await shutdown(); process.exit(); }), or with NestJS's shutdown hooks: async beforeApplicationShutdown() { await shutdown(); }`;
}
