import { LockOptionError } from "../base/errors";
import { DEFAULT_STORE, STORE_NAME } from "../base/limits";
import { isOptions, readFrom } from "../base/options";
import { formatValue } from "../base/format-value";
import type { Store, StoreAdmin, StoreBatch, StoreQueue } from "../stores/port";
import { quorumStore } from "../stores/quorum/quorum-store";
import { isAddress, type RedisAddress } from "../stores/redis/address";
import type { RedisClient } from "../stores/redis/client";
import { redisStore, redisStoreAt } from "../stores/redis/redis";

/**
 * An ioredis client, which you close yourself, or an address, for which Lockweave opens and closes a connection. An array of three or more
 * of them is a quorum of independent masters, as `quorumStore(masters)` makes it.
 */
export type RedisTarget = RedisClient | RedisAddress | readonly (RedisClient | RedisAddress)[];

/** The options of `configure()` that say where locks live. */
export interface Places {
  readonly redis?: RedisTarget;
  readonly store?: Store;
  readonly stores?: Readonly<Record<string, RedisTarget | Store>>;
}

/**
 * Returns the names of the stores. The default store, of `redis` or `store`, comes first.
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
 * @param use receives the stores by name, the default store first
 * @throws {LockOptionError} if one of them cannot be a store. If this or `use` throws, no store is left open
 */
export function openStores<Made>(places: Places, use: (stores: ReadonlyMap<string, Store>) => Made): Made {
  const { stores = {} } = places;
  const opened = new Map<string, Store>();
  const ours: Store[] = [];
  try {
    opened.set(DEFAULT_STORE, openDefault(places, ours));
    for (const name of readFrom("`stores`", () => Object.keys(stores))) {
      const what = `stores.${name}`;
      const open = (): Store => {
        const place: unknown = stores[name];
        const isStore = typeof (place as Partial<Store> | null | undefined)?.acquire === "function";
        return isStore ? checked(place as Store, what) : openRedis(place as RedisTarget, what, ours);
      };
      opened.set(name, readFrom(`\`${what}\``, open));
    }
    return use(opened);
  } catch (error) {
    for (const store of ours) void store.close?.();
    throw error;
  }
}

function assertName(name: string): void {
  if (name === DEFAULT_STORE) {
    throw new LockOptionError(
      `\`stores\` cannot contain \`${DEFAULT_STORE}\`, because that is the name of the store in \`redis\` or \`store\``,
    );
  }
  if (STORE_NAME.test(name)) return;
  throw new LockOptionError(
    `Expected the names in \`stores\` to consist of letters, digits, "-", and "_", got ${formatValue(name)}`,
  );
}

function openDefault(places: Places, ours: Store[]): Store {
  const { redis, store, stores } = places;
  if ((redis === undefined) === (store === undefined)) {
    const named = (["redis", "store"] as const).find((name) => name in places);
    // Typically an environment variable that is not set.
    const neither = named === undefined ? "neither" : `neither (\`${named}\` is undefined)`;
    const got = redis === undefined ? neither : "both";
    const why = stores === undefined || got === "both" ? "" : ", for locks that name no store";
    throw new LockOptionError(
      `Expected configure() to be given either \`redis\` or \`store\`, got ${got}${why}`,
    );
  }
  return store === undefined
    ? readFrom("`redis`", () => openRedis(redis as RedisTarget, "redis", ours))
    : readFrom("`store`", () => checked(store, "store"));
}

function openRedis(place: RedisTarget, what: string, ours: Store[]): Store {
  const store = openPlace(place, what);
  ours.push(store);
  return store;
}

function openPlace(place: RedisTarget, what: string): Store {
  if (Array.isArray(place)) return quorumStore(place as readonly (RedisClient | RedisAddress)[]);
  return isAddress(place) ? redisStoreAt(place, what) : redisStore(place as RedisClient, what);
}

const STORE_METHODS = ["acquire", "renew", "release", "peek"] as const satisfies (keyof Store)[];

/** The methods of a store that it may leave out. */
const OPTIONAL_METHODS = ["listen", "close"] as const satisfies (keyof Store)[];

/** The groups of methods that a store may leave out, and the methods that each group must have. */
const STORE_GROUPS = {
  queue: ["enqueue", "dequeue", "releaseAndEnqueue"] satisfies (keyof StoreQueue)[],
  admin: ["inspect", "revoke", "announce"] satisfies (keyof StoreAdmin)[],
  batch: ["acquireMany", "releaseMany"] satisfies (keyof StoreBatch)[],
} as const satisfies Partial<Record<keyof Store, readonly string[]>>;

function checked(store: Store, what: string): Store {
  const missing = missingIn(store);
  if (missing === undefined) return store;
  const lacks = missing === "acquire" ? "" : `, with a function \`${missing}\``;
  throw new LockOptionError(
    `Expected \`${what}\` to be a store such as memoryStore()${lacks}, got ${formatValue(store)}`,
  );
}

/** Returns the first method that the store lacks, such as `renew` or `queue.enqueue`. */
function missingIn(store: Store | null): string | undefined {
  const missing = STORE_METHODS.find((name) => typeof store?.[name] !== "function");
  if (missing !== undefined || store === null) return missing;
  if (store.queue !== undefined && store.listen === undefined) return "listen";
  const optional = OPTIONAL_METHODS.find((name) => !["function", "undefined"].includes(typeof store[name]));
  if (optional !== undefined) return optional;
  for (const [group, names] of Object.entries(STORE_GROUPS)) {
    const methods: unknown = store[group as keyof typeof STORE_GROUPS];
    if (methods === undefined) continue;
    const name = names.find((one) => typeof (methods as Fields | null)?.[one] !== "function");
    if (name !== undefined) return `${group}.${name}`;
  }
  return undefined;
}

type Fields = Readonly<Record<string, unknown>>;
