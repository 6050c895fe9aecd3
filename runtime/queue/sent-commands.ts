import type { AcquireRequest } from "../stores/port";
import { isHeldBy, isRevokedFrom } from "../stores/value";
import type { Waiter } from "./waiter";

/** The number of commands without a reply that are remembered. The key may hold the `requestId` of any of them. */
const MOST_UNANSWERED = 32;

/** A command that may acquire the key, or may have acquired it without our knowledge. */
export interface Sent {
  readonly request: AcquireRequest;
  readonly sentAt: number;
  readonly isInFlight: boolean;
  /** The waiter whose try ends with the reply, if it belongs to a try. */
  readonly caller?: Waiter;
}

/** The commands of one acquisition, and what it knows about the holds that they may have acquired. */
export class SentCommands {
  /** The commands that may have acquired the key: they are in flight, or got no reply. The oldest comes first. */
  unresolved: readonly Sent[] = NONE;
  /** The holds, by `requestId`, that were released before any caller relied on them. */
  #renounced: Set<string> | undefined;
  /** The holds, by `requestId`, that a renewal reduced to one permit. The command may have got more. */
  #reduced: Set<string> | undefined;
  /** The command that was last found to hold the key. */
  #found: Sent | undefined;
  /** The longest lock time to which a renewal may have extended a hold that was found. */
  #confirmedForMs = 0;

  /** Adds a command that is on its way. */
  add(added: Sent): void {
    if (this.unresolved.length >= MOST_UNANSWERED) {
      // If several commands are delayed, the oldest one acquires the key. So the list drops one from the middle, unless it was found to hold
      // the key.
      const middle = Math.floor(this.unresolved.length / 2);
      const dropped = this.unresolved[middle] === this.#found ? middle + 1 : middle;
      const sent = this.unresolved[dropped];
      if (sent?.isInFlight === false) this.remove(sent);
    }
    this.unresolved = this.unresolved.length === 0 ? [added] : [...this.unresolved, added];
  }

  remove(sent: Sent): void {
    if (!this.has(sent)) return;
    this.unresolved = this.unresolved.length === 1 ? NONE : this.unresolved.filter((other) => other !== sent);
  }

  has(sent: Sent): boolean {
    return this.unresolved.includes(sent);
  }

  get isAnyInFlight(): boolean {
    return this.unresolved.some(({ isInFlight }) => isInFlight);
  }

  /** Returns the command that holds the key, according to the value of the key. */
  heldBy(holder: string | undefined): Sent | undefined {
    return this.unresolved.find(({ request }) => isHeldBy(request.requestId, holder));
  }

  /** Returns the command whose hold was revoked, according to the value of the key. */
  revokedFrom(holder: string | undefined): Sent | undefined {
    return this.unresolved.find(({ request }) => isRevokedFrom(request.requestId, holder));
  }

  /** Returns a command for permits that got no reply. The value of a shared key does not name its holders, so it may have a hold. */
  findInDoubt(): Sent | undefined {
    return this.unresolved.find(({ request, isInFlight }) => (request.permits ?? 1) > 1 && !isInFlight);
  }

  /** Notes that this command holds the key, so that the list keeps it until it is confirmed or released. */
  noteFound(sent: Sent): void {
    this.#found = sent;
    if (!this.has(sent)) this.add(sent);
  }

  /** Notes that a hold was released before any caller relied on it. It must never become a lease. */
  renounce({ request }: Sent): void {
    (this.#renounced ??= new Set()).add(request.requestId);
  }

  isRenounced({ request }: Sent): boolean {
    return this.#renounced?.has(request.requestId) === true;
  }

  /** Notes that a renewal keeps only one of the permits that the command may have got. A later reply does not change that. */
  reduce({ request }: Sent): void {
    (this.#reduced ??= new Set()).add(request.requestId);
  }

  isReduced({ request }: Sent): boolean {
    return this.#reduced?.has(request.requestId) === true;
  }

  /** Notes the lock time of a renewal. */
  noteLockTime(ms: number): void {
    this.#confirmedForMs = Math.max(this.#confirmedForMs, ms);
  }

  /** The longest time for which the store may keep the hold, in milliseconds. */
  maxHoldMs({ request }: Sent): number {
    return Math.max(request.lockTimeMs, this.#confirmedForMs);
  }
}

const NONE: readonly Sent[] = [];
