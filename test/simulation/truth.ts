import type {
  EnqueueRequest,
  Renewed,
  RenewRequest,
  Acquired,
  AcquireRequest,
} from "../../runtime/stores/port";
import { closedAfter, isReserved, reservedFor } from "../../runtime/stores/value";
import { Guards } from "./guards";

/** The value of a key by the server's own replies, and the tickets in its queue, in order. */
interface KeyTruth {
  held: { readonly value: string; expiresAt: number } | undefined;
  /** The shared holds, by the request IDs of their commands. */
  readonly shares: Map<string, Share>;
  readonly waiters: Map<string, { readonly permits: number; readonly since: number }>;
  lastToken: number;
  /** How often the server broke its promise: lost the key, or let its clock step forward. */
  life: number;
}

interface Share {
  readonly permits: number;
  /** How many of the permits it has. */
  count: number;
  expiresAt: number;
}

/** A grant on which a process may let in its callers, one after the other. */
export interface Grant {
  /** When the first section began on it. */
  since: number | undefined;
  /** The life of the key in which the server last confirmed it. */
  life: number;
  /** The latest time until which the server has granted the key. */
  until: number;
  /** How many sections have run on it. */
  sections: number;
  /** Whether the command acquired the key twice. Then no reply proves that the key was held all the time. */
  isAcquiredAgain: boolean;
}

/** A hold that a restart of the server has kept. */
export interface RestoredHold extends Share {
  readonly key: string;
  readonly value: string;
}

const CLAIM_LASTS_MS = 1_500;

/** Returns an ID that begins with the number of its process, as request IDs and tickets do. */
export function requestIdOf(process: number, n: number): string {
  return process.toString(16).padStart(12, "0") + n.toString(16).padStart(20, "0");
}

export function processOf(requestId: string): number {
  return Number.parseInt(requestId.slice(0, 12), 16);
}

/**
 * Records from the outside what the server has replied and done. A process may be sure of a key only as long as this record
 * agrees.
 */
export class Truth {
  readonly guards: Guards;
  /** Whether the server calls `removed()`. Otherwise it removes what has expired with each command for the key. */
  reportsRemovals = false;
  readonly #now: () => number;
  readonly #report: (problem: string) => void;
  /** Whether tickets end only when they are served. Then the queue must keep its exact order. */
  readonly #isCalm: boolean;
  readonly #keys = new Map<string, KeyTruth>();
  readonly #gone = new Set<string>();
  readonly #grants = new Map<string, Grant>();
  readonly #overstaying = new Set<string>();
  readonly #revoked = new Set<string>();
  /** The key of each ticket, including past ones. */
  readonly #waitFor = new Map<string, string>();

  /** @param now the time on the server's clock */
  constructor(now: () => number, report: (problem: string) => void, isCalm: boolean) {
    this.#now = now;
    this.#report = report;
    this.guards = new Guards(report);
    this.#isCalm = isCalm;
  }

  // ---- what is so -------------------------------------------------------------------------------------

  /** Returns how long the server keeps the key for the holder without a renewal. */
  leftMs(key: string, requestId: string): number {
    const truth = this.#of(key);
    const held = this.#held(truth);
    const until = held?.value === requestId ? held.expiresAt : this.#shares(truth).get(requestId)?.expiresAt;
    return until === undefined ? 0 : until - this.#now();
  }

  /** Returns what the key holds, or the first of several shared holds. */
  value(key: string): string | undefined {
    return this.values(key)[0];
  }

  /** Returns the holders of the key, or its reservation. */
  values(key: string): string[] {
    const truth = this.#of(key);
    const held = this.#held(truth);
    return held === undefined ? [...this.#shares(truth).keys()] : [held.value];
  }

  /** Returns the first waiter, if there is room for it among the shared holds. */
  firstWithRoom(key: string): string | undefined {
    const truth = this.#of(key);
    const shares = this.#shares(truth);
    const [first] = truth.waiters;
    if (first === undefined) return undefined;
    const [ticket, { permits }] = first;
    return shares.size > 0 && roomBeside(permits, [...shares.values()]) > 0 ? ticket : undefined;
  }

  /** Returns how many callers may be inside on the shared hold. */
  capacityOf(key: string, requestId: string): number {
    const { permits, count } = this.#of(key).shares.get(requestId) ?? { permits: Infinity, count: 0 };
    return permits === Infinity ? Infinity : count;
  }

  /** Returns since when the first waiter waits that a reader of that time may not pass. It may pass other readers. */
  waitsSince(key: string, before: number): number {
    const waiting = [...this.#of(key).waiters.values()].filter(
      ({ since, permits }) => since < before && permits < Infinity,
    );
    return Math.min(...waiting.map(({ since }) => since));
  }

  /** Returns whether the server has kept its promise since it last granted the holder the key. */
  hasKeptPromise(key: string, requestId: string): boolean {
    const { life } = this.#of(key);
    return (this.#grants.get(requestId)?.life ?? life) === life;
  }

  /** Returns the current life of the key. */
  lifeOf(key: string): number {
    return this.#of(key).life;
  }

  /** Returns whether the key is neither held nor reserved. */
  isFree(key: string): boolean {
    return this.value(key) === undefined;
  }

  /** Returns the grant of the command. */
  grantTo(requestId: string): Grant | undefined {
    return this.#grants.get(requestId);
  }

  /** Returns whether the granted time is over, whatever happened before. */
  isOver(requestId: string): boolean {
    return (this.#grants.get(requestId)?.until ?? Infinity) <= this.#now();
  }

  /** Returns whether the server may keep the hold for longer than its process knows. */
  isOverstaying(value: string): boolean {
    return this.#overstaying.has(value);
  }

  /** The server reads the key. What has expired is gone then, even if its clock is set back afterwards. */
  reads(key: string): void {
    const truth = this.#of(key);
    if (truth.held !== undefined && this.#held(truth) === undefined) this.#free(truth);
    this.#writes(truth);
  }

  /** The server removes expired shared holds, even if its clock is set back afterwards. */
  #writes(truth: KeyTruth): void {
    if (this.reportsRemovals) return;
    const shares = this.#shares(truth);
    for (const requestId of truth.shares.keys()) if (!shares.has(requestId)) truth.shares.delete(requestId);
  }

  // ---- what the server does ---------------------------------------------------------------------------

  acquired(asked: AcquireRequest | EnqueueRequest, reply: Acquired): void {
    const { key, requestId, lockTimeMs, permits = 1, ...request } = asked;
    const { count = 1 } = reply;
    const truth = this.#of(key);
    const ticket = "ticket" in request ? request.ticket : undefined;
    const held = this.#held(truth);
    this.guards.granted(key, { requestId, permits });
    const isInTurn = ticket !== undefined && held?.value === reservedFor(ticket);
    if (held !== undefined && !isInTurn)
      this.#report(`${key} was granted to ${requestId} while ${held.value} held it`);
    const shares = this.#shares(truth);
    if (shares.size > 0 && roomBeside(permits, [...shares.values()]) < count)
      this.#report(`${key} was granted to ${requestId} while ${[...shares.keys()].join(" and ")} held it`);
    const mayPass =
      permits === Infinity && [...truth.waiters.values()].every((one) => one.permits === permits);
    if (!isInTurn && !(mayPass && shares.size > 0)) this.#serve(key, truth, ticket ?? requestId);
    if (ticket !== undefined) truth.waiters.delete(ticket);
    const expiresAt = this.#now() + lockTimeMs;
    this.#writes(truth);
    if (permits > 1) truth.shares.set(requestId, { permits, count, expiresAt });
    truth.held = permits > 1 ? undefined : { value: requestId, expiresAt };
    this.#revoked.delete(requestId); // The server has forgotten the revocation, too, and the command came again.
    const before = this.#grants.get(requestId);
    if (before === undefined) {
      const { life } = truth;
      this.#grants.set(requestId, {
        since: undefined,
        life,
        until: expiresAt,
        sections: 0,
        isAcquiredAgain: false,
      });
    } else {
      before.isAcquiredAgain = true;
      promise(before, truth, expiresAt);
    }
    this.#drew(key, truth, reply.fencingToken);
  }

  renewed({ key, requestId, lockTimeMs, count = Infinity }: RenewRequest, reply: Renewed): void {
    const truth = this.#of(key);
    const alone = this.#held(truth);
    const held = alone?.value === requestId ? alone : this.#shares(truth).get(requestId);
    if (held === undefined) {
      return this.#report(`${key} was renewed for ${requestId} while ${alone?.value ?? "nobody"} held it`);
    }
    if (this.#revoked.has(requestId)) this.#report(`${key} was renewed for ${requestId}, which is revoked`);
    const until = this.#now() + lockTimeMs;
    const grant = this.#grants.get(requestId);
    if (grant !== undefined) promise(grant, truth, until);
    held.expiresAt = Math.max(held.expiresAt, until);
    if ("count" in held) held.count = Math.min(held.count, count);
    this.#writes(truth);
    this.#drew(key, truth, reply.fencingToken);
  }

  #drew(key: string, truth: KeyTruth, token: number | undefined): void {
    if (token === undefined) return;
    if (token <= truth.lastToken) this.#report(`${key}: token ${token} was drawn after ${truth.lastToken}`);
    truth.lastToken = token;
  }

  /** A revoked hold is no longer renewed, and keeps the key until its release. */
  revoked(key: string, requestId: string): void {
    this.#revoked.add(requestId);
    this.guards.ends(requestId);
    this.#writes(this.#of(key));
  }

  /** @param cooldownMs how long no caller may acquire the key from now on */
  released(key: string, requestId: string, cooldownMs?: number): void {
    this.guards.ends(requestId);
    const truth = this.#of(key);
    if (truth.shares.delete(requestId)) this.#writes(truth);
    if (truth.held?.value !== requestId) return;
    if (cooldownMs === undefined) this.#free(truth);
    else truth.held = { value: closedAfter(requestId), expiresAt: this.#now() + cooldownMs };
  }

  enqueued({ key, ticket, permits = 1 }: EnqueueRequest): void {
    const { waiters } = this.#of(key);
    if (!waiters.has(ticket)) waiters.set(ticket, { permits, since: this.#now() });
    this.#waitFor.set(ticket, key);
    this.#gone.delete(ticket);
  }

  /** Returns the key of the ticket. */
  keyOf(ticket: string): string | undefined {
    return this.#waitFor.get(ticket);
  }

  /** The queue reserves the key for the ticket. */
  reserved(ticket: string): void {
    const key = this.#waitFor.get(ticket);
    if (key === undefined) return; // It was enqueued and served at once, as the reply says.
    if (this.#gone.has(ticket)) this.#report(`${ticket} was offered ${key}, and has left`);
    const truth = this.#of(key);
    this.#serve(key, truth, ticket);
    truth.held = { value: reservedFor(ticket), expiresAt: this.#now() + CLAIM_LASTS_MS };
  }

  /** A waiter has left, and must be offered nothing more. */
  dequeued(key: string, ticket: string): void {
    const truth = this.#of(key);
    this.#gone.add(ticket);
    truth.waiters.delete(ticket);
    if (truth.held?.value === reservedFor(ticket)) this.#free(truth);
  }

  #free(truth: KeyTruth): void {
    truth.held = undefined;
  }

  /** A key goes to its first waiter, or to any caller if nobody waits. */
  #serve(key: string, { waiters }: KeyTruth, ticket: string): void {
    const [first] = waiters.keys();
    if (this.#isCalm && first !== undefined && first !== ticket)
      this.#report(`${key} went to ${ticket} before ${first}, which came first to the queue`);
    waiters.delete(ticket);
  }

  /** The server removes a hold that is over. */
  removed(key: string, requestId: string): void {
    const truth = this.#of(key);
    truth.shares.delete(requestId);
    if (truth.held?.value === requestId) this.#free(truth);
  }

  /**
   * The server restarts with these holds. Those that it had ended before are back. Its queues may be older, too, and the processes correct
   * that.
   */
  restarted(holds: readonly RestoredHold[]): void {
    const before = new Set([...this.#keys.keys()].flatMap((key) => this.values(key)));
    this.#gone.clear();
    for (const truth of this.#keys.values()) {
      truth.waiters.clear();
      truth.shares.clear();
      this.#free(truth);
    }
    for (const { key, value, permits, count, expiresAt } of holds) {
      const truth = this.#of(key);
      if (permits > 1) truth.shares.set(value, { permits, count, expiresAt });
      else truth.held = { value, expiresAt };
      if (before.has(value)) continue;
      this.#overstaying.add(value);
      this.guards.restored(value);
    }
  }

  /** The server keeps the hold to the end of its lock time, because its release came too early. */
  overstays(requestId: string): void {
    this.#overstaying.add(requestId);
  }

  // ---- how the server breaks its promise -----------------------------------------------------------------

  /** The server loses its data. Fencing tokens must still rise. */
  forget(): void {
    for (const truth of this.#keys.values()) {
      truth.life += 1;
      truth.waiters.clear();
      truth.shares.clear();
      this.#free(truth);
    }
  }

  /** The server loses what one key holds, because an operator deletes it. */
  deleted(key: string, requestId: string): void {
    this.released(key, requestId);
    this.#of(key).life += 1;
  }

  /** The server's clock steps forward, so its grants end too early. */
  steppedForward(ms: number): void {
    for (const truth of this.#keys.values()) truth.life += 1;
    for (const grant of this.#grants.values()) grant.until += ms;
  }

  /** The server's clock steps back, so its grants end later than processes expect. */
  steppedBack(): void {
    for (const { held, shares } of this.#keys.values()) {
      if (held !== undefined) this.#overstaying.add(held.value);
      for (const requestId of shares.keys()) this.#overstaying.add(requestId);
    }
  }

  #held(truth: KeyTruth): KeyTruth["held"] {
    return truth.held !== undefined && this.#now() < truth.held.expiresAt ? truth.held : undefined;
  }

  /** Returns the shared holds that have not expired. */
  #shares({ shares }: KeyTruth): KeyTruth["shares"] {
    if (shares.size === 0) return shares;
    return new Map([...shares].filter(([, { expiresAt }]) => this.#now() < expiresAt));
  }

  #of(key: string): KeyTruth {
    let truth = this.#keys.get(key);
    if (truth === undefined) {
      truth = { held: undefined, shares: new Map(), waiters: new Map(), lastToken: 0, life: 0 };
      this.#keys.set(key, truth);
    }
    return truth;
  }
}

/** The server grants the key until a time. It must keep a longer grant from another life instead. */
function promise(grant: Grant, { life }: KeyTruth, until: number): void {
  if (until < grant.until) return;
  grant.life = life;
  grant.until = until;
}

/** Returns how many more may enter: readers only with readers, others up to the smallest number of permits. */
function roomBeside(permits: number, others: readonly Share[]): number {
  const isReader = permits === Infinity;
  if (isReader || others.some((other) => other.permits === Infinity)) {
    return isReader && others.every((other) => other.permits === Infinity) ? Infinity : 0;
  }
  const most = Math.min(permits, ...others.map((other) => other.permits));
  return most - others.reduce((sum, { count }) => sum + count, 0);
}

/** Describes what a key holds, for the text of a problem. */
export function describeHolder(value: string | undefined): string {
  if (value === undefined) return "nobody holds it";
  return isReserved(value) ? "it is reserved for a waiter" : `${value} holds it`;
}
