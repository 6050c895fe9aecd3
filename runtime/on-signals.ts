import { constants } from "node:os";
import type { Clock } from "./clock";
import { LockOptionError } from "./errors";
import type { Logger } from "./logger";
import { readFrom } from "./options";
import { rooted } from "./root-context";
import { formatValue } from "./format-value";

/** Ends the process at once, whatever anybody listens to. */
const CANNOT_BE_CAUGHT = new Set(["SIGKILL", "SIGSTOP"]);

/** @throws {LockOptionError} unless these are names of signals that a process can listen to */
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

/** By then most applications have started, and with them others who listen. */
const STARTED_AFTER_MS = 10_000;

/**
 * Calls `shutdown` at the first of the signals. Whether the process ends afterwards is for others who listen to
 * that signal; if there is nobody else, it ends by the signal, as it would have without us, and as process 1 with the
 * exit code that stands for the signal. Who sends the signal once more while `shutdown` is under way has had enough
 * of waiting: nothing of ours is in the way any more.
 *
 * One of the others may end the process under bodies that `shutdown` waits for: the logger is warned as soon as there
 * is one, which is looked for now, when the application has started, and at the signal.
 *
 * @returns ends the listening
 */
export function shutdownOnSignals(
  signals: readonly NodeJS.Signals[],
  shutdown: () => Promise<void>,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): () => void {
  const unshared = new Set(signals);
  const lookForOthers = (): void => {
    const shared = [...unshared].filter((signal) =>
      process.listeners(signal).some((other) => other !== onSignal),
    );
    for (const signal of shared) unshared.delete(signal);
    if (shared.length > 0) logger.warn(besideOthers(shared));
  };
  const stopListening = (): void => {
    cancelLook();
    for (const signal of signals) process.off(signal, onSignal);
  };
  const onSignal = rooted(async (signal: NodeJS.Signals): Promise<void> => {
    const isOursAlone = process.listenerCount(signal) === 1;
    lookForOthers();
    // First, since a signal that nobody listens to for a moment is lost on process 1.
    if (process.pid === 1) for (const each of signals) process.on(each, endFirstProcess);
    stopListening();
    try {
      await shutdown();
    } finally {
      if (isOursAlone) process.kill(process.pid, signal);
    }
  });
  lookForOthers();
  if (signals.length === 0) return () => {};
  const cancelLook = clock.afterInBackground(STARTED_AFTER_MS, lookForOthers);
  for (const signal of signals) process.on(signal, onSignal);
  return stopListening;
}

/** What a signal does by default, but not to process 1, which is how a container runs its program. */
function endFirstProcess(signal: NodeJS.Signals): void {
  if (process.listenerCount(signal) === 1) process.exit(128 + constants.signals[signal]);
}

function besideOthers(signals: readonly NodeJS.Signals[]): string {
  const names = signals.join(" and ");
  return `configure({ shutdownOn }): something else listens to ${names} too. If it ends the process, it does so under the bodies of locks, and their keys stay for their lock time. Leave ${names} out of shutdownOn, and let that listener wait: process.on("${signals[0]}", async () => { await shutdown(); process.exit(); }), or with NestJS's shutdown hooks: async beforeApplicationShutdown() { await shutdown(); }`;
}
