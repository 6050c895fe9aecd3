import { assertOneVersion, noteConfigured } from "../base/copies";
import { milliseconds, type Duration } from "../base/duration";
import { LockNotWovenError, LockOptionError } from "../base/errors";
import { formatValue } from "../base/format-value";
import { isOptions, readOptions } from "../base/options";
import type { Settings } from "../lock/settings";
import type { Store } from "../stores/port";
import { readConfiguration, type Configuration } from "./configuration";
import { createLocker, lockerOf, type Means } from "./create-locker";
import { begin, endAll, newestLocker, replace, replaceableBy, type Configured } from "./in-force";
import { NOT_WOVEN } from "./not-woven";
import { checkSignals, shutdownOnSignals } from "./on-signals";
import { assertAllNeeded, missingOf, noteNeed } from "./required-stores";

/** The default of `patience`. */
const PATIENCE_MS = 10_000;

/**
 * Sets the stores of locks. Call it once, at startup.
 *
 * In a development server, the same call replaces the configuration as soon as all locks of the earlier one are released.
 *
 * @param handshake written by the transformer. Without it, this call throws, so that no tagged function runs unlocked
 * @param callSite written by the transformer: the identity of the call, which does not change when you edit the file
 * @throws {LockNotWovenError} if the calling code was not woven
 * @throws {LockOptionError} if an option is invalid
 * @throws {LockMisconfiguredError} if another place already called it, if a tag names a store that is not configured, or if the process has
 *   loaded another version of this package
 */
export function configure(configuration: Configuration, handshake?: "woven", callSite?: string): void {
  assertOneVersion();
  const before = replaceableBy(callSite);
  const isWoven = handshake === "woven";
  if (!isWoven && !isOptions(configuration)) throw new LockNotWovenError(NOT_WOVEN);
  const own = readConfiguration(configuration);
  const { woven, shutdownOn = [], patience } = own;
  if (!isWoven && woven !== false) throw new LockNotWovenError(NOT_WOVEN);
  const signals = checkSignals(shutdownOn);
  const patienceMs = patience === undefined ? PATIENCE_MS : milliseconds("patience", patience);
  const open = (means: Means): Configured => {
    const opened = createLocker(own, means);
    return {
      given: own,
      locker: opened,
      patienceMs,
      callSite,
      listen: () => shutdownOnSignals(signals, shutdown, opened),
    };
  };
  if (before !== undefined) return replace(before, own, () => warnOfMissing(open({})));
  begin(open({ assertNames: assertAllNeeded }));
  noteConfigured();
}

/**
 * Warns of missing stores. It throws no error, because the code that asked for a store may have changed, too. If it has not, its lock
 * reports the missing store.
 */
function warnOfMissing(configured: Configured): Configured {
  const { all, logger } = configured.locker;
  const missing = missingOf(Array.from(all.values(), ({ name }) => name));
  if (missing !== undefined) logger.warn(`configure(): ${missing.message}`);
  return configured;
}

/**
 * Sets the stores of locks for unit tests, whose own code need not be woven.
 *
 * @param openStore opens the default store, and each store that a lock names
 * @param always settings that override those of every lock
 */
export function configureForTests(openStore: () => Store, always: Partial<Settings>): void {
  assertOneVersion();
  replaceableBy(undefined);
  const given = { store: openStore() };
  const opened = createLocker(given, { always, openStore });
  begin({ given, locker: opened, patienceMs: PATIENCE_MS, callSite: undefined, listen: () => () => {} });
}

/**
 * Records the tags of a module that name a store. A woven module calls it when it is loaded.
 *
 * @throws {LockMisconfiguredError} if `configure()` was called without that store
 */
export function needsStore(name: string, ...sites: readonly string[]): void {
  noteNeed(name, sites);
  const newest = newestLocker();
  if (newest !== undefined) lockerOf(name, sites, newest.all);
}

/**
 * Ends all locks. It first waits for up to `patience` until no body runs. Meanwhile it still grants locks, because a body may need another
 * one to finish. Then it rejects all waiters with a `LockClosedError`, revokes and releases the locks that are still held, and closes the
 * connections that `configure()` opened.
 *
 * @param options.patience the longest wait for bodies. The default is the `patience` of `configure()`. `"0s"` does not wait
 */
export async function shutdown(options: { readonly patience?: Duration } = {}): Promise<void> {
  const expected = (): LockOptionError =>
    new LockOptionError(`Expected shutdown() or shutdown({ patience: "10s" }), got ${formatValue(options)}`);
  if (!isOptions(options)) throw expected();
  const { patience } = readOptions(options, ["patience"], expected);
  await endAll(patience === undefined ? undefined : milliseconds("patience", patience));
}
