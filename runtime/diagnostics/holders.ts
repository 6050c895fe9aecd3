import { LockError, LockMisconfiguredError, LockUnreachableError, errorMessage } from "../base/errors";
import { keyInStore } from "../lock/events";
import type { Locker } from "../lock/locker";
import type { InspectedHold, Inspection, StoreAdmin } from "../stores/port";
import { inspection } from "../stores/replies";
import { isClosed, isReserved, isRevoked, revokedFrom } from "../stores/value";

/** A holder of a lock. */
export interface InspectedHolder {
  /** Its value in the store: a request ID, or what another program wrote. */
  readonly storeValue: string;
  /** The time until it expires unless it is renewed, in milliseconds. `undefined` if the store does not know. */
  readonly leftMs: number | undefined;
  /** Whether `forceRelease()` has revoked it. It ends with its body, or when its lock time is over. */
  readonly isRevoked: boolean;
  /**
   * The number of callers that share it. For a hold of another process, this is its number of permits. `undefined` if the store does not
   * know, as for the readers of another process.
   */
  readonly count: number | undefined;
  /** If the holder is in this process: its function, and how long it has held the lock, in milliseconds. */
  readonly here: { readonly site: string | undefined; readonly heldForMs: number } | undefined;
}

/** Returns the holders of the lock. Reservations and closed keys are not holders. */
export function holdersOf(
  { queues, clock }: Locker,
  key: string,
  holds: readonly InspectedHold[],
): readonly InspectedHolder[] {
  const { leases } = queues.hereOf(key);
  const now = clock.now();
  return holds
    .filter(({ value }) => !isReserved(value) && !isClosed(value))
    .map(({ value, leftMs, permits }): InspectedHolder => {
      const lease = leases.find(({ requestId }) => [requestId, revokedFrom(requestId)].includes(value));
      const holder = lease?.holder;
      const here = holder && { site: holder.site, heldForMs: now - holder.heldSince };
      const count = lease?.callers ?? permits;
      return { storeValue: value, leftMs, isRevoked: isRevoked(value), count, here };
    });
}

/**
 * @throws {LockUnreachableError} if the store did not reply
 * @throws {LockMisconfiguredError} if the store has no commands for people
 */
export async function inspectKey(of: Locker, key: string): Promise<Inspection> {
  const admin = adminOf(of, key);
  return await askStore(of, key, (timeoutMs) => admin.inspect(key, timeoutMs), inspection);
}

/** @throws {LockMisconfiguredError} if the store has no commands for people */
export function adminOf({ store, name }: Locker, key: string): StoreAdmin {
  if (store.admin !== undefined) return store.admin;
  throw new LockMisconfiguredError(
    `${keyInStore({ key, store: name })}: the store \`${name}\` has no \`admin\` group, so Lockweave cannot inspect or revoke its locks. Fix: give the store \`admin\` with \`inspect\`, \`revoke\`, and \`announce\`, as the type \`StoreAdmin\` describes`,
  );
}

/**
 * Asks the store about a key.
 *
 * @param read converts the reply, or throws if the reply is invalid
 * @throws {LockUnreachableError} if the store did not reply
 */
export async function askStore<Reply>(
  { name, queues }: Locker,
  key: string,
  send: (timeoutMs: number) => Promise<unknown>,
  read: (reply: unknown) => Reply,
): Promise<Reply> {
  try {
    return await queues.inFlight.ask(send, read);
  } catch (error) {
    if (error instanceof LockError) throw error;
    const message = `${keyInStore({ key, store: name })}: the store could not be read: ${errorMessage(error)}`;
    throw new LockUnreachableError(message, { cause: error });
  }
}
