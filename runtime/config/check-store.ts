import { LockOptionError } from "../base/errors";
import { formatValue } from "../base/format-value";
import { withCheckedReplies } from "../stores/checked-store";
import type { Store, StoreAdmin, StoreBatch, StoreGuard, StoreQueue } from "../stores/port";

const METHODS = ["acquire", "renew", "release", "peek"] as const satisfies (keyof Store)[];

/** The optional methods of a store. */
const OPTIONAL_METHODS = ["state", "ready", "listen", "close"] as const satisfies (keyof Store)[];

/** The optional groups of a store, and the methods that each group must have. */
const GROUPS = {
  queue: ["enqueue", "dequeue", "releaseAndEnqueue"] satisfies (keyof StoreQueue)[],
  admin: ["inspect", "revoke", "announce"] satisfies (keyof StoreAdmin)[],
  batch: ["acquireMany", "releaseMany"] satisfies (keyof StoreBatch)[],
  transactions: ["guard"] satisfies (keyof StoreGuard)[],
} as const satisfies Partial<Record<keyof Store, readonly string[]>>;

/** All methods of each group, including the optional ones. */
const GROUP_METHODS: Readonly<Record<keyof typeof GROUPS, readonly string[]>> = {
  ...GROUPS,
  admin: [...GROUPS.admin, "announced" satisfies keyof StoreAdmin],
  batch: [...GROUPS.batch, "enqueueMany" satisfies keyof StoreBatch],
};
const GROUP_NAMES = Object.keys(GROUPS) as (keyof typeof GROUPS)[];

/**
 * Returns a store that also checks the replies of the store, unless it belongs to Lockweave.
 *
 * @param what the option that has it, such as `store`
 * @throws {LockOptionError} if a method is missing, is no function, or is in a place where Lockweave never calls it
 */
export function checkStore(store: Store, what: string): Store {
  const missing = missingMethod(store);
  if (missing !== undefined) {
    const lacks = missing === "acquire" ? "" : `, with a function \`${missing}\``;
    throw new LockOptionError(
      `Expected \`${what}\` to be a store such as memoryStore()${lacks}, got ${formatValue(store)}`,
    );
  }
  assertOptional(store, what);
  assertNoneMisplaced(store, what);
  return withCheckedReplies(store);
}

/** Returns the first method that the store lacks, such as `renew` or `queue.enqueue`. */
function missingMethod(store: Store | null): string | undefined {
  const missing = METHODS.find((name) => typeof store?.[name] !== "function");
  if (missing !== undefined || store === null) return missing;
  if (store.queue !== undefined && store.listen === undefined) return "listen";
  for (const group of GROUP_NAMES) {
    const methods = fieldsOf(store)[group];
    if (methods === undefined) continue;
    const name = GROUPS[group].find((one) => !hasMethod(methods, one));
    if (name !== undefined) return `${group}.${name}`;
  }
  return undefined;
}

/** Checks the optional methods and groups. */
function assertOptional(store: Store, what: string): void {
  const { admin, batch } = store;
  const assertIs = (type: "function" | "boolean", name: string, value: unknown): void => {
    if (value === undefined || typeof value === type) return;
    const expected = type === "function" ? "a function" : "true or false";
    throw new LockOptionError(
      `Expected \`${what}.${name}\` to be ${expected}, got ${formatValue(value)}. Fix: leave it out if the store does not support it`,
    );
  };
  for (const name of OPTIONAL_METHODS) assertIs("function", name, store[name]);
  assertIs("function", "admin.announced", admin?.announced);
  assertIs("boolean", "confirmsReplicas", store.confirmsReplicas);
  assertIs("function", "batch.enqueueMany", batch?.enqueueMany);
  assertIs("boolean", "batch.splitsMany", batch?.splitsMany);
}

/**
 * Refuses a method of a group in another place, such as on the store itself. Lockweave would never call it, and the store would work as if
 * it had no such method. A store may be its own group, and then has the methods in both places. It may also set a group to `undefined`, to
 * turn off a group that it would have otherwise.
 */
function assertNoneMisplaced(store: Store, what: string): void {
  const fields = fieldsOf(store);
  for (const group of GROUP_NAMES) {
    if (group in store && fields[group] === undefined) continue;
    const name = GROUP_METHODS[group].find(
      (one) =>
        !hasMethod(fields[group], one) &&
        [store, ...GROUP_NAMES.map((other) => fields[other])].some((place) => hasMethod(place, one)),
    );
    if (name === undefined) continue;
    throw new LockOptionError(
      `Expected the function \`${name}\` of \`${what}\` in its group \`${group}\`, because Lockweave calls it only there. Fix: move it: { ${group}: { ${name}, ... } }. If it does something else, rename it`,
    );
  }
}

function hasMethod(place: unknown, name: string): boolean {
  return typeof fieldsOf(place)[name] === "function";
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return (value ?? {}) as Readonly<Record<string, unknown>>;
}
