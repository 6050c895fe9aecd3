import { LockError, LockUnreachableError, reasonOf } from "./errors";
import { placeOf } from "./lock/events";
import type { Locker } from "./lock/locker";
import { isClosed, isReserved, isRevoked, revokedFrom, sharesIn } from "./stores/value";

/** One who holds a lock. */
export interface InspectedHolder {
  /** What the key holds of it: of a lock of ours its request's id, of anybody else's hold whatever that is. */
  readonly storeValue: string;
  /** Until it expires unless it is renewed, in milliseconds; `undefined` where the store cannot tell. */
  readonly leftMs: number | undefined;
  /** Whether `forceRelease()` has revoked it: it is renewed no more, and ends with its body, or when its time is over. */
  readonly isRevoked: boolean;
  /** In this process: the function that holds it, and for how long. */
  readonly here: { readonly site: string | undefined; readonly heldForMs: number } | undefined;
}

/** What a key holds. */
export interface Hold {
  readonly value: string;
  readonly leftMs: number | undefined;
}

/** Those who hold the lock; what only keeps others from it is none. */
export function holdersOf(
  { queues, clock }: Locker,
  key: string,
  holds: readonly Hold[],
): readonly InspectedHolder[] {
  const { leases } = queues.hereOf(key);
  const now = clock.now();
  return holds
    .filter(({ value }) => !isReserved(value) && !isClosed(value))
    .map(({ value, leftMs }): InspectedHolder => {
      const holder = leases.find(({ requestId }) =>
        [requestId, revokedFrom(requestId)].includes(value),
      )?.holder;
      const here = holder && { site: holder.site, heldForMs: now - holder.heldSince };
      return { storeValue: value, leftMs, isRevoked: isRevoked(value), here };
    });
}

interface Found {
  readonly holds: readonly Hold[];
  readonly waiting: number | undefined;
}

/** @throws {LockUnreachableError} when the store did not answer */
export async function inspected(of: Locker, key: string): Promise<Found> {
  const { store } = of;
  return await asked(of, key, async (withinMs): Promise<Found> => {
    if (store.inspect !== undefined) return await store.inspect(key, withinMs);
    const [value] = await store.look([key], withinMs);
    if (value instanceof Error) throw value;
    const values = value === undefined ? [] : (sharesIn(value)?.map(({ requestId }) => requestId) ?? [value]);
    return { holds: values.map((one) => ({ value: one, leftMs: undefined })), waiting: undefined };
  });
}

/** @throws {LockUnreachableError} when the store did not answer */
export async function asked<Reply>(
  { name, queues }: Locker,
  key: string,
  send: (withinMs: number) => Promise<Reply>,
): Promise<Reply> {
  try {
    return await queues.inFlight.ask(send);
  } catch (error) {
    if (error instanceof LockError) throw error;
    const message = `${placeOf({ key, store: name })}: the store could not be asked: ${reasonOf(error)}`;
    throw new LockUnreachableError(message, { cause: error });
  }
}
