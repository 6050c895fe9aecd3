import { wholeNumber } from "../attributes/check";
import { assertClock, inRootContext, systemClock, type Clock } from "../base/clock";
import { milliseconds, type Duration } from "../base/duration";
import { LockOptionError } from "../base/errors";
import { formatValue } from "../base/format-value";
import { MOST_OPEN_RELEASES, OPEN_RELEASES } from "../base/limits";
import {
  assertLogger,
  quietConsole,
  safeLogger,
  type FieldOrder,
  type Logger,
  type SafeLogger,
} from "../base/logger";
import { isOptions, readFrom, readOptions } from "../base/options";
import { assertHandler, type FailureHandler } from "../lock/on-failure";
import { settleDefaults, type LockOptions, type Settings } from "../lock/settings";
import type { Store } from "../stores/port";
import type { PostgresTarget } from "../stores/postgres/target";
import type { RedisTarget, StoreTarget } from "./configured-stores";

/** The name of a signal, such as `"SIGTERM"`. Node's own type for it exists only in projects that have installed Node's types. */
export type SignalName = `SIG${string}`;

/** The options of `configure()`. */
export interface Configuration {
  /**
   * A client of ioredis, iovalkey, node-redis, Valkey GLIDE, or Bun, which you close yourself, or the address of a server, to which Lockweave connects. An
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

/**
 * Returns a copy of the options of `configure()`.
 *
 * @throws {LockOptionError} if one of them is unknown, or cannot be read
 */
export function readConfiguration(given: Configuration): Configuration {
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

/** The options that all lockers of a configuration share, checked and complete. */
export interface SharedOptions {
  readonly defaults: Settings;
  readonly logger: SafeLogger;
  readonly clock: Clock;
  readonly commandTimeoutMs: number;
  readonly openReleases: number;
  readonly isAnnounced: boolean;
  /** `undefined`: no warnings about slow locks. */
  readonly slowAfterMs: number | undefined;
  readonly onFailure: FailureHandler | undefined;
}

/** @throws {LockOptionError} if one of them is invalid */
export function sharedOptions(configuration: Configuration): SharedOptions {
  const { defaults = {}, logger = quietConsole, logFields, clock = systemClock, onFailure } = configuration;
  const {
    commandTimeout = "1s",
    openReleases = OPEN_RELEASES,
    warnAfter,
    announce = false,
    woven = false,
  } = configuration;
  readFrom("The option `logger`", () => assertLogger(logger));
  if (logFields !== undefined && logFields !== "first" && logFields !== "last") {
    throw new LockOptionError(
      `Expected \`logFields\` to be "first" or "last", got ${formatValue(logFields)}`,
    );
  }
  assertHandler(onFailure);
  for (const [name, value] of Object.entries({ woven, announce })) {
    if (typeof value === "boolean") continue;
    throw new LockOptionError(`Expected \`${name}\` to be true or false, got ${formatValue(value)}`);
  }
  assertClock(clock);
  return {
    defaults: settleDefaults(defaults),
    logger: safeLogger(logger, logger === quietConsole ? undefined : logFields),
    clock: inRootContext(clock),
    commandTimeoutMs: milliseconds("commandTimeout", commandTimeout, 10),
    openReleases: wholeNumber("openReleases", openReleases, { to: MOST_OPEN_RELEASES }),
    isAnnounced: announce,
    slowAfterMs: warnAfter === undefined ? undefined : milliseconds("warnAfter", warnAfter, 10),
    onFailure,
  };
}
