import { constants } from "node:os";

import { LockOptionError } from "./errors";
import { shown } from "./shown";

/** Ends the process at once, whatever anybody listens to. */
const CANNOT_BE_CAUGHT = new Set(["SIGKILL", "SIGSTOP"]);

/** @throws {LockOptionError} unless these are names of signals that a process can listen to */
export function checkSignals(signals: unknown): readonly NodeJS.Signals[] {
  const isSignal = (name: unknown): name is NodeJS.Signals =>
    typeof name === "string" && Object.hasOwn(constants.signals, name) && !CANNOT_BE_CAUGHT.has(name);
  if (Array.isArray(signals) && signals.every(isSignal)) return [...new Set(signals)];
  throw new LockOptionError(
    `Expected \`shutdownOn\` to be a list of signals such as ["SIGTERM", "SIGINT"], got ${shown(signals)}`,
  );
}

/**
 * Calls `shutdown` at the first of the signals. Whether the process ends afterwards is for others who listen to
 * that signal; if there is nobody else, it ends by the signal, as it would have without us. Who sends the signal
 * once more while `shutdown` is under way has had enough of waiting: nothing of ours is in the way any more.
 *
 * @returns ends the listening
 */
export function shutdownOnSignals(
  signals: readonly NodeJS.Signals[],
  shutdown: () => Promise<void>,
): () => void {
  const stopListening = (): void => {
    for (const signal of signals) process.off(signal, onSignal);
  };
  const onSignal = async (signal: NodeJS.Signals): Promise<void> => {
    const isOursAlone = process.listenerCount(signal) === 1;
    stopListening();
    await shutdown();
    if (isOursAlone) process.kill(process.pid, signal);
  };
  for (const signal of signals) process.on(signal, onSignal);
  return stopListening;
}
