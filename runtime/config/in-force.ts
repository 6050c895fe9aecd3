import { closeIdle, drainAndClose } from "./closing";
import { LockMisconfiguredError, errorMessage } from "../base/errors";
import { putInForce, type Locker } from "../lock/locker";
import { inRoot } from "../base/root-context";
import { isSameConfiguration } from "./same-configuration";
import { isIdle, onceIdle } from "./when-idle";

/** A configuration whose stores are open. */
export interface Configured {
  readonly given: object;
  readonly locker: Locker;
  /** The longest wait for bodies at its end, unless the caller of `shutdown()` sets another one. */
  readonly patienceMs: number;
  /** The place of the `configure()` call, if it is known. */
  readonly callSite: string | undefined;
  /** Listens to the signals of the configuration. Returns a function that ends this. */
  listen(): () => void;
}

/** The configuration whose stores new locks use. */
export interface InForce extends Configured {
  readonly stopListening: () => void;
  /** The configuration that replaces this one as soon as no lock of this one is held or waited for. */
  next: { readonly configured: Configured; readonly cancel: () => void } | undefined;
}

/** Undefined before `configure()`, and from the beginning of a shutdown on. */
let inForce: InForce | undefined;
/** Resolves when all stores that were replaced are closed. */
let replaced: Promise<void> = Promise.resolve();
/** The shutdowns so far. */
let shuttingDown: Promise<void> | undefined;
/** The lockers that are being shut down, and have not closed their stores yet. */
const draining = new Set<Locker>();

/** Returns the locker of the last `configure()` call, which may have to wait until it is in force. */
export function newestLocker(): Locker | undefined {
  return (inForce?.next?.configured ?? inForce)?.locker;
}

/**
 * Returns the configuration that a call in this place replaces, if there is one.
 *
 * @throws {LockMisconfiguredError} if a call in another place configured the process
 */
export function replaceableBy(callSite: string | undefined): InForce | undefined {
  if (inForce === undefined) return undefined;
  const { callSite: earlier } = inForce;
  if (callSite !== undefined && callSite === earlier) return inForce;
  const places =
    callSite === undefined || earlier === undefined ? "" : `: in ${earlier}, and now in ${callSite}`;
  throw new LockMisconfiguredError(
    `configure() was already called${places}. Fix: call \`await shutdown()\` before you configure again`,
  );
}

/**
 * Puts a configuration in force.
 *
 * @throws the error of its `listen`. Then its stores are closed, and everything stays as it was
 */
export function begin(configured: Configured): void {
  let stopListening: () => void;
  try {
    stopListening = configured.listen();
  } catch (error) {
    close(configured.locker);
    throw error;
  }
  putInForce(configured.locker);
  inForce = { ...configured, stopListening, next: undefined };
}

/**
 * Replaces a configuration as soon as no lock of it is held or waited for. If both are the same, it does nothing.
 *
 * @param open opens the stores of the new configuration
 * @throws what `open` throws. Then everything stays as it was
 */
export function replace(before: InForce, given: object, open: () => Configured): void {
  if (isSameConfiguration(given, (before.next?.configured ?? before).given)) return;
  if (isSameConfiguration(given, before.given)) return dropNext(before);
  const after = open();
  dropNext(before);
  const swap = (): void => {
    before.next = undefined;
    begin(after);
    before.stopListening();
    close(before.locker);
  };
  if (isIdle(before.locker)) swap();
  else before.next = { configured: after, cancel: onceIdle(before.locker, swap) };
}

function dropNext(before: InForce): void {
  if (before.next === undefined) return;
  const { configured, cancel } = before.next;
  before.next = undefined;
  cancel();
  close(configured.locker);
}

function close(old: Locker): void {
  const before = replaced;
  replaced = inRoot(async () => {
    try {
      await closeIdle(old, inUse);
    } catch (error) {
      old.logger.warn(
        `configure(): a store of the earlier configuration could not be closed: ${errorMessage(error)}`,
      );
    }
    await before;
  });
}

/** Returns the lockers whose stores must stay open. `configure()` may be called again during a shutdown, and may get the same store. */
function inUse(): readonly Locker[] {
  return [...draining, ...[inForce, inForce?.next?.configured].flatMap((each) => each?.locker ?? [])];
}

/** Ends the configuration in force, and drops one that waits to replace it: see `shutdown()`. */
export async function endAll(patienceMs?: number): Promise<void> {
  if (inForce !== undefined) {
    const ending = inForce;
    ending.stopListening();
    dropNext(ending);
    inForce = undefined;
    const before = shuttingDown;
    const { locker: old, patienceMs: usualMs } = ending;
    draining.add(old);
    const ends = drainAndClose(old, patienceMs ?? usualMs, () => {
      draining.delete(old);
      return inUse();
    });
    ends.catch(() => {}); // The earlier shutdown may take longer.
    // An earlier shutdown may still wait for bodies. Its own caller learns whether it failed.
    shuttingDown = Promise.allSettled([before]).then(() => ends);
    shuttingDown.catch(() => {});
  }
  await shuttingDown; // A second call during the shutdown waits for the same end.
  await replaced;
}
