import { LockOptionError } from "../base/errors";
import { DEFAULT_STORE, STORE_NAME } from "../base/limits";
import { isOptions, readFrom, readOptions } from "../base/options";
import { formatValue } from "../base/format-value";
import type { Store } from "../stores/port";
import { checkStore } from "./check-store";
import { quorumStoreOf } from "../stores/quorum/quorum-store";
import { isAddress, type RedisAddress } from "../stores/redis/address";
import type { GivenClient, QuorumClient, UnsupportedClient } from "../stores/redis/client";
import type { LibraryLog } from "../stores/load-library";
import { mayLookLikeStore } from "../stores/redis/recognize-client";
import { redisStore, redisStoreAt } from "../stores/redis/redis";
import { describePostgresValue } from "../stores/postgres/recognize";
import { loadPostgres } from "../stores/postgres/load-postgres";
import type { PostgresTarget } from "../stores/postgres/target";

/** The value of `redis` in `configure()`: a client, an address, or an array of these for a quorum. */
export type RedisTarget =
  GivenClient | RedisAddress | UnsupportedClient | readonly (QuorumClient | RedisAddress)[];

/** A store in `stores` of `configure()`. */
export type StoreTarget = RedisTarget | Store | { readonly postgres: PostgresTarget };

/** The options of `configure()` that say where locks live. */
export interface Places {
  readonly redis?: RedisTarget;
  readonly postgres?: PostgresTarget;
  readonly store?: Store;
  readonly stores?: Readonly<Record<string, StoreTarget>>;
}

/** The options that name the default store. */
const DEFAULTS = ["redis", "postgres", "store"] as const satisfies (keyof Places)[];

/**
 * Returns the names of the stores. The default store, of `redis`, `postgres`, or `store`, comes first.
 *
 * @throws {LockOptionError} if a name is not allowed
 */
export function namesOf({ stores = {} }: Places): readonly string[] {
  if (!isOptions(stores)) {
    throw new LockOptionError(
      `Expected \`stores\` to be an object such as { payments: "redis://..." }, got ${formatValue(stores)}`,
    );
  }
  const names = readFrom("`stores`", () => Object.keys(stores));
  for (const name of names) assertName(name);
  return [DEFAULT_STORE, ...names];
}

/**
 * Opens the stores and passes them to `use`.
 *
 * @param log receives which client library a URL uses
 * @param use receives the stores by name, the default store first
 * @throws {LockOptionError} if one of them cannot be a store. If this or `use` throws, no store is left open
 */
export function openStores<Made>(
  places: Places,
  log: LibraryLog,
  use: (stores: ReadonlyMap<string, Store>) => Made,
): Made {
  const { stores = {} } = places;
  const opened = new Map<string, Store>();
  const ours: Store[] = [];
  const keep = (store: Store): Store => {
    ours.push(store);
    return store;
  };
  const openers: Openers = {
    openRedis: (place, what) => keep(openPlace(place, what, log)),
    openPostgres: (place, what) => keep(loadPostgres().postgresStoreAt(place, what, log)),
  };
  try {
    opened.set(DEFAULT_STORE, openDefault(places, openers));
    for (const name of readFrom("`stores`", () => Object.keys(stores))) {
      const what = `stores.${name}`;
      const open = (): Store => {
        const place: unknown = stores[name];
        if (isStore(place)) return checkStore(place, what);
        return isOfPostgres(place)
          ? openers.openPostgres(readPostgres(place, what), `${what}.postgres`)
          : openers.openRedis(place as RedisTarget, what);
      };
      opened.set(name, readFrom(`\`${what}\``, open));
    }
    return use(opened);
  } catch (error) {
    for (const store of ours) void store.close?.();
    throw error;
  }
}

function isStore(place: unknown): place is Store {
  return (
    typeof (place as Partial<Store> | null | undefined)?.acquire === "function" && !mayLookLikeStore(place)
  );
}

/** Opens stores that `configure()` closes. */
interface Openers {
  openRedis(place: RedisTarget, what: string): Store;
  openPostgres(place: PostgresTarget, what: string): Store;
}

function isOfPostgres(place: unknown): place is { readonly postgres: PostgresTarget } {
  return isOptions(place) && "postgres" in place;
}

function readPostgres(place: { readonly postgres: PostgresTarget }, what: string): PostgresTarget {
  const expected = (name: string): LockOptionError =>
    new LockOptionError(
      `Expected \`${what}\` to be { postgres: ... }, got the option \`${name}\` next to it. Fix: put the options into \`postgres\`: { postgres: { url: "postgres://...", schema: "locks" } }`,
    );
  return readOptions(place, ["postgres"], expected).postgres;
}

function assertName(name: string): void {
  if (name === DEFAULT_STORE) {
    throw new LockOptionError(
      `\`stores\` cannot contain \`${DEFAULT_STORE}\`, because that is the name of the store in \`redis\`, \`postgres\`, or \`store\``,
    );
  }
  if (STORE_NAME.test(name)) return;
  throw new LockOptionError(
    `Expected the names in \`stores\` to consist of letters, digits, "-", and "_", got ${formatValue(name)}`,
  );
}

function openDefault(places: Places, { openRedis, openPostgres }: Openers): Store {
  const given = DEFAULTS.filter((name) => places[name] !== undefined);
  if (given.length !== 1) {
    const { stores } = places;
    const named = DEFAULTS.find((name) => name in places);
    // Typically an environment variable that is not set.
    const none = named === undefined ? "none" : `none (\`${named}\` is undefined)`;
    const got = given.length === 0 ? none : given.map((name) => `\`${name}\``).join(" and ");
    const why = stores === undefined || given.length > 0 ? "" : ", for locks that name no store";
    throw new LockOptionError(
      `Expected configure() to be given one of \`redis\`, \`postgres\`, and \`store\`, got ${got}${why}`,
    );
  }
  const { redis, postgres, store } = places;
  if (postgres !== undefined) return readFrom("`postgres`", () => openPostgres(postgres, "postgres"));
  return store === undefined
    ? readFrom("`redis`", () => openRedis(redis as RedisTarget, "redis"))
    : readFrom("`store`", () => checkStore(store, "store"));
}

function openPlace(place: RedisTarget, what: string, log: LibraryLog): Store {
  const other = describePostgresValue(place);
  if (other !== undefined) {
    const where = what === "redis" ? "the option `postgres`" : `\`${what}\` as { postgres: ... }`;
    throw new LockOptionError(
      `Expected \`${what}\` to be a Redis client or URL, got ${other}. Fix: give it to ${where}`,
    );
  }
  if (Array.isArray(place)) return quorumStoreOf(place as readonly (QuorumClient | RedisAddress)[], {}, log);
  return isAddress(place)
    ? redisStoreAt(place, what, log)
    : redisStore(place as GivenClient | UnsupportedClient, what);
}
