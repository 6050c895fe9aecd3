import { requestIds } from "../base/request-id";
import { LockOptionError } from "../base/errors";
import { DEFAULT_STORE } from "../base/limits";
import { inRoot } from "../base/root-context";
import { announce } from "../diagnostics/announce";
import { holderFinder } from "../diagnostics/announced-holder";
import { warnOfSlowLocks } from "../diagnostics/slow-locks";
import { Events } from "../lock/events";
import { CallSites, termsOf, type Locker, type Lockers, type Terms } from "../lock/locker";
import { OpenReleases } from "../lock/open-releases";
import { settle, type LockOptions, type Settings } from "../lock/settings";
import { LockManager } from "../queue/lock-manager";
import type { Store } from "../stores/port";
import { readConfiguration, sharedOptions, type Configuration, type SharedOptions } from "./configuration";
import { namesOf, openStores } from "./configured-stores";
import { noStore } from "./required-stores";

/** What a caller of `createLocker` decides, and not the configuration. */
export interface Means {
  /** Receives the names of the stores before they are opened. */
  readonly assertNames?: (names: readonly string[]) => void;
  /** Settings that override those of every lock. */
  readonly always?: Partial<Settings>;
  /** Opens a store that a lock names and that the configuration does not have. */
  readonly openStore?: () => Store;
}

/**
 * Returns the locker for locks that name no store. Several configurations may coexist in one process, which is how tests simulate whole
 * fleets.
 *
 * @throws {LockOptionError} if an option is invalid
 */
export function createLocker(given: Configuration, means: Means = {}): Locker {
  const configuration = readConfiguration(given);
  // In the root context, because connections serve all callers and may be opened on behalf of one of them.
  return inRoot(() => {
    const options = sharedOptions(configuration);
    const { defaults, logger } = options;
    const names = namesOf(configuration);
    if (!names.includes(defaults.store) && means.openStore === undefined) {
      throw noStore([[defaults.store, ["configure({ defaults })"]]], names);
    }
    means.assertNames?.(names);
    return openStores(configuration, logger, (stores) => {
      const defaultStore = stores.get(defaults.store);
      if (defaultStore !== undefined) checkReplicas(defaults, defaultStore);
      return lockerOf(DEFAULT_STORE, [], lockersOf(stores, options, means));
    });
  });
}

function lockersOf(stores: ReadonlyMap<string, Store>, options: SharedOptions, means: Means): Lockers {
  const { defaults, clock, logger, commandTimeoutMs, isAnnounced, slowAfterMs } = options;
  const { openStore } = means;
  const { processNumber, next: newRequestId } = requestIds();
  const lockers = new Map<string, Locker>();
  const stops: (() => void)[] = [];
  const all: Lockers = {
    get: (name) => lockers.get(name) ?? (openStore && open(name, openStore())),
    values: () => lockers.values(),
    stopAnnouncing: () => stops.forEach((stop) => stop()),
  };
  const shared = {
    defaults,
    callSites: callSitesOf(options, means, all),
    clock,
    logger,
    events: new Events(logger),
    openReleases: new OpenReleases(options.openReleases),
    newRequestId,
    all,
  };
  const open = (name: string, store: Store): Locker => {
    const prefix = name === DEFAULT_STORE ? "" : `${name}: `;
    const warn = (message: string): void => logger.warnOnce(prefix + message);
    const manager = new LockManager(clock, store, commandTimeoutMs, newRequestId, warn);
    const findHolder = isAnnounced ? holderFinder({ store, manager }) : undefined;
    const opened: Locker = { ...shared, name, store, manager, findHolder };
    lockers.set(name, opened);
    return opened;
  };
  for (const [name, store] of stores) open(name, store);
  if (isAnnounced) stops.push(announce(stores, processNumber, clock, commandTimeoutMs));
  if (slowAfterMs !== undefined)
    stops.push(warnOfSlowLocks(all, processNumber, slowAfterMs, clock, logger.warn));
  return all;
}

function callSitesOf(
  { defaults, onFailure }: SharedOptions,
  { always = {} }: Means,
  all: Lockers,
): CallSites<Terms> {
  return new CallSites((options: LockOptions, site, others) => {
    const settings = { ...settle(options, defaults, others), ...always };
    const found = lockerOf(settings.store, site === undefined ? [] : [site], all);
    const onTimeout = options.onFailure === undefined ? onFailure : undefined;
    return termsOf(found, checkReplicas(settings, found.store), site, onTimeout);
  });
}

/**
 * Returns the locker of a store.
 *
 * @param sites the functions that need it
 * @throws {LockMisconfiguredError} if there is no such store
 */
export function lockerOf(store: string, sites: readonly string[], lockers: Lockers): Locker {
  const found = lockers.get(store);
  if (found !== undefined) return found;
  const names = Array.from(lockers.values(), ({ name }) => name);
  throw noStore([[store, sites]], names);
}

/** @throws {LockOptionError} if the settings need replicas, and the store does not support them */
function checkReplicas(settings: Settings, { confirmsReplicas = false }: Store): Settings {
  if (settings.replicas === 0 || confirmsReplicas) return settings;
  throw new LockOptionError(
    `replicas=${settings.replicas} needs \`configure({ redis })\` with one Redis, Sentinel, or a cluster. This store has no replicas. For a quorum, leave \`replicas\` out, because a majority of its masters confirms each lock`,
  );
}
