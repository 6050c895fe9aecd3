import { LockError, LockMisconfiguredError, LockUnreachableError, errorMessage } from "../base/errors";
import { findHolder } from "./announced-holder";
import { keyInStore } from "../lock/events";
import type { AnnouncedHolder, Locker } from "../lock/locker";
import type { InspectedHold, Inspection, StoreAdmin } from "../stores/port";
import { isClosed, isGuarded, isReserved, isRevoked, revokedFrom } from "../stores/value";

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
  /**
   * If the holder is in another process that announces itself: what it announced. `site` is known for a lock that was held for longer than a
   * second. `undefined` for a revoked hold.
   */
  readonly elsewhere: AnnouncedHolder | undefined;
}

/** The most processes whose announcements are read for one lock. */
const MOST_READ = 100;

/** Returns the holders of the lock. Reservations, closed keys, and holds that are over are not holders. */
export function holdersOf(
  { manager, clock }: Locker,
  key: string,
  holds: readonly InspectedHold[],
): readonly InspectedHolder[] {
  const { leases } = manager.hereOf(key);
  const now = clock.now();
  return holds
    .filter(({ value }) => !isReserved(value) && !isClosed(value) && !isGuarded(value))
    .map(({ value, leftMs, permits }): InspectedHolder => {
      const lease = leases.find(({ requestId }) => [requestId, revokedFrom(requestId)].includes(value));
      const holder = lease?.holder;
      const here = holder && { site: holder.site, heldForMs: now - holder.heldSince };
      const count = lease?.callers ?? permits;
      return { storeValue: value, leftMs, isRevoked: isRevoked(value), count, here, elsewhere: undefined };
    });
}

/** Adds what the processes of holders elsewhere announced. */
export async function withAnnounced(
  of: Locker,
  key: string,
  holders: readonly InspectedHolder[],
): Promise<readonly InspectedHolder[]> {
  const remote = holders.filter(({ here }) => here === undefined).slice(0, MOST_READ);
  const found = await Promise.all(remote.map(({ storeValue }) => findHolder(of, key, storeValue)));
  return holders.map((holder) => {
    const elsewhere = found[remote.indexOf(holder)];
    return elsewhere === undefined ? holder : Object.assign({}, holder, { elsewhere });
  });
}

/**
 * @throws {LockUnreachableError} if the store did not reply
 * @throws {LockMisconfiguredError} if the store has no commands for people
 */
export async function inspectKey(locker: Locker, key: string): Promise<Inspection> {
  const admin = adminOf(locker, key);
  return await askStore(locker, key, (timeoutMs) => admin.inspect(key, timeoutMs));
}

/** @throws {LockMisconfiguredError} if the store has no commands for people */
export function adminOf({ store, name }: Locker, key: string): StoreAdmin {
  if (store.admin !== undefined) return store.admin;
  throw new LockMisconfiguredError(
    `${keyInStore({ key, store: name })}: the store \`${name}\` has no \`admin\` group, so Lockweave cannot inspect or revoke its locks. Fix: give the store \`admin\` with \`inspect\`, \`revoke\`, and \`announce\`, as the type \`StoreAdmin\` describes`,
    { key },
  );
}

/**
 * Asks the store about a key.
 *
 * @throws {LockUnreachableError} if the store did not reply
 */
export async function askStore<Reply>(
  { name, manager }: Locker,
  key: string,
  send: (timeoutMs: number) => Promise<Reply>,
): Promise<Reply> {
  try {
    return await manager.inFlight.ask(send);
  } catch (error) {
    if (error instanceof LockError) throw error;
    const message = `${keyInStore({ key, store: name })}: the store could not be read: ${errorMessage(error)}`;
    throw new LockUnreachableError(message, { key, cause: error });
  }
}
