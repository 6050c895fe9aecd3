import { announce } from "../diagnostics/announce";
import { holderFinder } from "../diagnostics/announced-holder";
import { requestIds } from "../base/request-id";
import { assertClock, inRootContext, systemClock, type Clock } from "../base/clock";
import { milliseconds, type Duration } from "../base/duration";
import { assertOneVersion, noteConfigured } from "../base/copies";
import { namesOf, openStores, type RedisTarget, type StoreTarget } from "./configured-stores";
import { LockNotWovenError, LockOptionError } from "../base/errors";
import { NOT_WOVEN } from "./not-woven";
import { begin, endAll, newestLocker, replace, replaceableBy, type Configured } from "./in-force";
import { DEFAULT_STORE, MOST_OPEN_RELEASES, OPEN_RELEASES } from "../base/limits";
import { assertAllNeeded, missingOf, noStore, noteNeed } from "./required-stores";
import { checkSignals, shutdownOnSignals } from "./on-signals";
import { Events } from "../lock/events";
import { CallSites, termsOf, type Locker, type Lockers } from "../lock/locker";
import { assertLogger, quietConsole, safeLogger, type FieldOrder, type Logger } from "../base/logger";
import { assertHandler, type FailureHandler } from "../lock/on-failure";
import { OpenReleases } from "../lock/open-releases";
import { settle, settleDefaults, type LockOptions, type Settings } from "../lock/settings";
import { wholeNumber } from "../attributes/check";
import { isOptions, readFrom, readOptions } from "../base/options";
import { LockManager } from "../queue/lock-manager";
import { inRoot } from "../base/root-context";
import type { Store } from "../stores/port";
import type { PostgresTarget } from "../stores/postgres/target";
import { formatValue } from "../base/format-value";
import { warnOfSlowLocks } from "../diagnostics/slow-locks";

/** The name of a signal, such as `"SIGTERM"`. Node's own type for it exists only in projects that have installed Node's types. */
export type SignalName = `SIG${string}`;

/** The options of `configure()`. */
export interface Configuration {
  /**
   * A client of ioredis, node-redis, Valkey GLIDE, or Bun, which you close yourself, or the address of a server, to which Lockweave connects. An
   * array of three or more servers is a quorum, as `quorumStore()` makes it.
   */
  readonly redis?: RedisTarget;
  /**
   * PostgreSQL instead of `redis`: a URL, a `Pool` of `pg`, a client of postgres.js, or `{ url, schema }`. Lockweave opens its own
   * connections, and closes them.
   */
  readonly postgres?: PostgresTarget;
  /** A store instead of `redis` or `postgres`, such as `memoryStore()`. */
  readonly store?: Store;
  /**
   * Other stores by name: `{ payments: "redis://...", ledger: { postgres: "postgres://..." } }` for tags with `store=payments` or
   * `store=ledger`. The same key is a different lock in each store.
   */
  readonly stores?: Readonly<Record<string, StoreTarget>>;
  /** Options for all locks that do not set their own. Set options that change the woven code in the plugin's `defaults`. */
  readonly defaults?: Omit<LockOptions, "onFailure" | "onUnreachable" | "reentrant" | "mode" | "permits">;
  /** Receives log lines. By default, warnings go to `console.warn`, and nothing else is logged. `console` also shows each step of a lock. */
  readonly logger?: Logger;
  /**
   * Also passes the fields of each log line to the logger, such as `key`, `site`, and `requestId`: before the message (`"first"`, for pino and
   * bunyan), or after it (`"last"`, for winston and `console`). Without `logger`, it has no effect. Default: the message alone.
   */
  readonly logFields?: FieldOrder;
  /** The longest time that one command to the store may take. Default `"1s"`. */
  readonly commandTimeout?: Duration;
  /**
   * The largest number of open releases with `release: "background"`. Beyond it, callers wait for the reply. Default 1,000. With 0, they
   * always wait.
   */
  readonly openReleases?: number;
  /**
   * Signals that call `shutdown()`, such as `["SIGTERM", "SIGINT"]`. If nothing else listens to the signal, the process then ends. As
   * process 1 in a container, it exits with 128 + the number of the signal. If another listener may end the process too early, let that
   * listener `await shutdown()` instead. Default: none, so call `shutdown()` yourself.
   */
  readonly shutdownOn?: readonly SignalName[];
  /** The longest wait of `shutdown()` for running bodies, unless that call sets its own. Default `"10s"`. */
  readonly patience?: Duration;
  /**
   * Handles a lock that is not free within the wait budget, for all calls that set no `onFailure` of their own. It may throw an error, which
   * the call then throws. Otherwise, the call throws the `LockWaitTimeoutError`. The body never runs.
   */
  readonly onFailure?: FailureHandler;
  /** The clock of the runtime, for tests. */
  readonly clock?: Clock;
  /**
   * Writes the host, pid, and version of this process to the stores, so that `npx lockweave top` can name the holder of a lock. This costs
   * one `SET` every 20 s. While the process holds or waits for a lock for longer than a second, it costs one every 5 s, which also contains
   * the keys of these locks, and the number of calls that wait for each. The error of a timeout names an announced holder in another process,
   * which costs one `GET`. Default `false`.
   */
  readonly announce?: boolean;
  /** Warns about a lock that a caller holds, or waits for, for longer than this, such as `"5s"`. A warning about a waiter names the holder.
   * Default: no warnings.
   */
  readonly warnAfter?: Duration;
  /** `false` if the application has no tags, and its build does not weave. */
  readonly woven?: boolean;
}

const OPTIONS: readonly string[] = [
  "redis",
  "postgres",
  "store",
  "stores",
  "defaults",
  "logger",
  "logFields",
  "commandTimeout",
  "openReleases",
  "shutdownOn",
  "patience",
  "onFailure",
  "clock",
  "announce",
  "warnAfter",
  "woven",
] satisfies (keyof Configuration)[];

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

function lockerOf(store: string, sites: readonly string[], lockers: Lockers): Locker {
  const found = lockers.get(store);
  if (found !== undefined) return found;
  const names = Array.from(lockers.values(), ({ name }) => name);
  throw noStore([[store, sites]], names);
}

interface Means {
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
 */
export function createLocker(given: Configuration, means: Means = {}): Locker {
  const configuration = readConfiguration(given);
  // In the root context, because connections serve all callers and may be opened on behalf of one of them.
  return inRoot(() => openLocker(configuration, means));
}

function openLocker(configuration: Configuration, means: Means): Locker {
  const {
    defaults = {},
    logger = quietConsole,
    commandTimeout = "1s",
    clock: given = systemClock,
  } = configuration;
  const { openReleases = OPEN_RELEASES } = configuration;
  readFrom("The option `logger`", () => assertLogger(logger));
  const { logFields } = configuration;
  if (logFields !== undefined && logFields !== "first" && logFields !== "last") {
    throw new LockOptionError(
      `Expected \`logFields\` to be "first" or "last", got ${formatValue(logFields)}`,
    );
  }
  const { woven, warnAfter, announce: isAnnounced = false, onFailure } = configuration;
  assertHandler(onFailure);
  if (woven !== undefined && typeof woven !== "boolean") {
    throw new LockOptionError(`Expected \`woven\` to be true or false, got ${formatValue(woven)}`);
  }
  if (typeof isAnnounced !== "boolean") {
    throw new LockOptionError(`Expected \`announce\` to be true or false, got ${formatValue(isAnnounced)}`);
  }
  assertClock(given);
  const clock = inRootContext(given);
  const settings = settleDefaults(defaults);
  const commandTimeoutMs = milliseconds("commandTimeout", commandTimeout, 10);
  const slowAfterMs = warnAfter === undefined ? undefined : milliseconds("warnAfter", warnAfter, 10);
  const { assertNames = () => {}, always = {}, openStore } = means;
  const names = namesOf(configuration);
  if (!names.includes(settings.store) && openStore === undefined) {
    throw noStore([[settings.store, ["configure({ defaults })"]]], names);
  }
  assertNames(names);
  const safe = safeLogger(logger, logger === quietConsole ? undefined : logFields);
  return openStores(configuration, safe, (stores) => {
    const defaultStore = stores.get(settings.store);
    if (defaultStore !== undefined) checkReplicas(settings, defaultStore);
    const { processNumber, next: newRequestId } = requestIds();
    const lockers = new Map<string, Locker>();
    let stopAnnouncing = (): void => {};
    let stopWarning = (): void => {};
    const open = (name: string, store: Store): Locker => {
      const prefix = name === DEFAULT_STORE ? "" : `${name}: `;
      const warn = (message: string): void => safe.warnOnce(prefix + message);
      const manager = new LockManager(clock, store, commandTimeoutMs, newRequestId, warn);
      const finder = isAnnounced ? holderFinder({ store, manager }) : undefined;
      const created: Locker = { ...shared, name, store, manager, findHolder: finder };
      lockers.set(name, created);
      return created;
    };
    const all: Lockers = {
      get: (name) => lockers.get(name) ?? (openStore && open(name, openStore())),
      values: () => lockers.values(),
      stopAnnouncing() {
        stopAnnouncing();
        stopWarning();
      },
    };
    const shared = {
      defaults: settings,
      callSites: new CallSites((options, site, others) => {
        const settled = { ...settle(options, settings, others), ...always };
        const found = lockerOf(settled.store, site === undefined ? [] : [site], all);
        const isOwn = (options as LockOptions).onFailure !== undefined;
        return termsOf(found, checkReplicas(settled, found.store), site, isOwn ? undefined : onFailure);
      }),
      clock,
      logger: safe,
      events: new Events(safe),
      openReleases: new OpenReleases(wholeNumber("openReleases", openReleases, { to: MOST_OPEN_RELEASES })),
      newRequestId,
      all,
    };
    for (const [name, store] of stores) open(name, store);
    if (slowAfterMs !== undefined) {
      stopWarning = warnOfSlowLocks(all, processNumber, slowAfterMs, clock, safe.warn);
    }
    if (isAnnounced) stopAnnouncing = announce(stores, processNumber, clock, commandTimeoutMs);
    return lockerOf(DEFAULT_STORE, [], all);
  });
}

function readConfiguration(given: Configuration): Configuration {
  if (!isOptions(given)) {
    throw new LockOptionError(
      `Expected configure({ redis }) or configure({ store }), got ${formatValue(given)}`,
    );
  }
  return readOptions(given, OPTIONS, (name) => {
    const hint = ADDRESS_OPTIONS.has(name) ? ADDRESS_HINT : "";
    return new LockOptionError(
      `configure() has no option \`${name}\`. The options are ${OPTIONS.join(", ")}${hint}`,
    );
  });
}

/** Options by which other clients describe a server. */
const ADDRESS_OPTIONS: ReadonlySet<string> = new Set([
  "url",
  "host",
  "port",
  "password",
  "username",
  "db",
  "tls",
]);
const ADDRESS_HINT =
  '. The address of the server goes in `redis`: { redis: "redis://user:password@host:6379/0" }, or { redis: new Redis({ host, port }) } with ioredis';

/** @throws {LockOptionError} if the settings need replicas, and the store does not support them */
function checkReplicas(settings: Settings, { confirmsReplicas = false }: Store): Settings {
  if (settings.replicas === 0 || confirmsReplicas) return settings;
  throw new LockOptionError(
    `replicas=${settings.replicas} needs \`configure({ redis })\` with one Redis, Sentinel, or a cluster. This store has no replicas. For a quorum, leave \`replicas\` out, because a majority of its masters confirms each lock`,
  );
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
