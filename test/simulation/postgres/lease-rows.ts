import {
  CLAIM_TIME_MS,
  FENCING_STRIDE,
  MOST_DEAD_AT_ONCE,
  TICKET_TIME_MS,
} from "../../../runtime/stores/port";
import type { WakeUp } from "../../../runtime/stores/postgres/statements";
import {
  closedAfter,
  guardedAfter,
  reservedFor,
  revokedFrom,
  SHARED_BY_READERS,
  sharedByPermits,
} from "../../../runtime/stores/value";

// A model of the tables, and of the functions in `schema/` that read and change them. The methods have the names of the functions.
// `differential.test.ts` compares them with a real server.

/** A row of the table `hold`. Its times are in milliseconds on the server's clock. */
export interface Hold {
  /** The same for all versions of one row. A guard that read an old version still locks this row. */
  readonly row: number;
  readonly key: string;
  readonly holder: string;
  readonly expiresAt: number;
  readonly isRevoked: boolean;
  readonly isReleased: boolean;
  /** `undefined` for an exclusive hold, and 0 for a reader. */
  readonly limit: number | undefined;
  readonly permits: number;
  /** Its renewal group. */
  readonly groupId?: string;
}

/** A row of the table `renewal_group`. */
export interface Group {
  readonly expiresAt: number;
  readonly renewals: number;
}

/** A row of the table `waiter`. */
export interface Waiter {
  readonly key: string;
  readonly turn: number;
  readonly ticket: string;
  readonly inbox: string;
  readonly isReader: boolean;
  readonly expiresAt: number;
}

/** A request as the store sends it. */
export interface RequestRow {
  readonly key: string;
  readonly request_id: string;
  readonly lock_ms: number;
  readonly fencing?: boolean;
  readonly permit_limit?: number;
  readonly permits?: number;
  readonly ticket?: string;
  readonly inbox?: string;
  readonly cooldown_ms?: number;
  readonly group_id?: string;
}

/** A request to renew a group. */
export interface GroupRow {
  readonly id: string;
  readonly renewals: number;
  readonly lock_ms: number;
  readonly ended: readonly { readonly key: string; readonly request_id: string }[];
}

export interface KeyState {
  value: string;
  readonly isShared: boolean;
  isOver: boolean;
  readonly permits: number;
  readonly leastLimit: number | undefined;
  readonly mostLimit: number | undefined;
  readonly firstEnds: number;
  lastEnds: number;
}

interface FirstWaiter {
  readonly ticket: string | undefined;
  readonly inbox: string;
  readonly isAfterDead: boolean;
}

export interface Grant {
  readonly granted: true;
  readonly token: string | null;
  readonly count: number;
  readonly other_limit: number | null;
  readonly waiters: boolean;
}

export interface Refusal {
  readonly granted: false;
  readonly holder: string | null;
  readonly free_in_ms: number | null;
  readonly last: boolean;
}

/** The committed rows. Each is replaced and never changed, so a copy of the lists is a snapshot. */
export interface Rows {
  readonly holds: ReadonlyMap<string, readonly Hold[]>;
  readonly groups: ReadonlyMap<string, Group>;
  readonly waiters: ReadonlyMap<string, readonly Waiter[]>;
  readonly tokens: ReadonlyMap<string, number>;
}

/** What the functions need of the server. */
export interface Surroundings {
  /** The time on the server's clock, in milliseconds. */
  now(): number;
  epochMicroseconds(): number;
  /** From 0 to below 1. */
  random(): number;
  /** A row that was over is gone. */
  onRemoved?(hold: Hold): void;
  /** A key is reserved for a waiter. */
  onReserved?(key: string, ticket: string): void;
  /** A request of a command is done. */
  onReply?(command: string, requests: readonly RequestRow[], reply: unknown): void;
  /** A transaction has locked the row of a hold. */
  onGuarded?(transaction: object, hold: Hold): void;
}

/** A sweep spares rows that were over only lately. */
const SWEPT_AFTER_MS = 5_000;

export class LeaseRows {
  readonly server: Surroundings;
  /** The wake-ups that the current command has noted. */
  wakeUps: WakeUp[] = [];
  #holds = new Map<string, readonly Hold[]>();
  #groups = new Map<string, Group>();
  #waiters = new Map<string, readonly Waiter[]>();
  #tokens = new Map<string, number>();
  #lastRow = 0;
  /** The open transactions that have locked each row. */
  readonly #locks = new Map<number, Set<object>>();

  constructor(server: Surroundings) {
    this.server = server;
  }

  // ---- rows -------------------------------------------------------------------------------------------

  get snapshot(): Rows {
    return {
      holds: new Map(this.#holds),
      groups: new Map(this.#groups),
      waiters: new Map(this.#waiters),
      tokens: new Map(this.#tokens),
    };
  }

  /** Makes these the committed rows. */
  restore({ holds, groups, waiters, tokens }: Rows): void {
    this.#holds = new Map(holds);
    this.#groups = new Map(groups);
    this.#waiters = new Map(waiters);
    this.#tokens = new Map(tokens);
  }

  holds(key: string): readonly Hold[] {
    return this.#holds.get(key) ?? NONE;
  }

  waiters(key: string): readonly Waiter[] {
    return this.#waiters.get(key) ?? NONE;
  }

  find(key: string, holder: string): Hold | undefined {
    return this.holds(key).find((hold) => hold.holder === holder);
  }

  /** Locks the row with `FOR KEY SHARE`. */
  lock(transaction: object, row: number): void {
    const locks = this.#locks.get(row) ?? new Set();
    this.#locks.set(row, locks.add(transaction));
  }

  unlockAll(transaction: object): void {
    for (const [row, locks] of this.#locks) {
      if (locks.delete(transaction) && locks.size === 0) this.#locks.delete(row);
    }
  }

  isLocked({ row }: Hold): boolean {
    return this.#locks.has(row);
  }

  insert(hold: Omit<Hold, "row" | "isRevoked" | "isReleased"> & Partial<Hold>): void {
    const { key, holder } = hold;
    if (this.find(key, holder) !== undefined) throw new DuplicateKey();
    const row = (this.#lastRow += 1);
    this.#holds.set(key, [...this.holds(key), { isRevoked: false, isReleased: false, ...hold, row }]);
  }

  update(hold: Hold, changes: Partial<Hold>): void {
    const changed = { ...hold, ...changes };
    this.#holds.set(
      hold.key,
      this.holds(hold.key).map((one) => (one.row === hold.row ? changed : one)),
    );
  }

  delete(...rows: readonly Hold[]): void {
    for (const { key, row } of rows) {
      const left = this.holds(key).filter((one) => one.row !== row);
      if (left.length === 0) this.#holds.delete(key);
      else this.#holds.set(key, left);
    }
  }

  #setWaiters(key: string, waiters: readonly Waiter[]): void {
    if (waiters.length === 0) this.#waiters.delete(key);
    else this.#waiters.set(key, waiters);
  }

  /** Returns whether there was such a waiter. */
  deleteWaiter(key: string, ticket: string | undefined): boolean {
    const before = this.waiters(key);
    const left = before.filter((waiter) => waiter.ticket !== ticket);
    this.#setWaiters(key, left);
    return left.length < before.length;
  }

  // ---- the state of a key -----------------------------------------------------------------------------

  /** Returns the time at which a hold ends. */
  endsAt({ expiresAt, groupId = "" }: Hold): number {
    return Math.max(expiresAt, this.#groups.get(groupId)?.expiresAt ?? -Infinity);
  }

  isAlive(hold: Hold): boolean {
    return !hold.isReleased && this.endsAt(hold) > this.server.now();
  }

  valueOf(hold: Hold): string {
    if (!this.isAlive(hold)) return guardedAfter(hold.holder);
    return hold.isRevoked ? revokedFrom(hold.holder) : hold.holder;
  }

  /** Removes holds that are over. It leaves those whose rows are locked. */
  removeOver(key: string): void {
    const over = this.holds(key).filter((hold) => !this.isAlive(hold) && !this.isLocked(hold));
    this.removeOverGroups(this.holds(key));
    const removed = over.slice(0, MOST_DEAD_AT_ONCE);
    this.delete(...removed);
    for (const hold of removed) this.server.onRemoved?.(hold);
  }

  /** Removes the groups of these holds that are over, so that nobody can renew them any more. */
  removeOverGroups(holds: readonly Hold[]): void {
    for (const hold of holds) {
      const { groupId = "", isReleased, expiresAt } = hold;
      if (!isReleased && expiresAt <= this.server.now() && !this.isAlive(hold)) this.#groups.delete(groupId);
    }
  }

  readKey(key: string): KeyState | undefined {
    if (this.holds(key).some((hold) => !this.isAlive(hold))) this.removeOver(key);
    const holds = this.holds(key);
    if (holds.length === 0) return undefined;
    const limits = holds.map(({ limit }) => limit).filter((limit) => limit !== undefined);
    const permits = sum(holds.filter(({ limit = 0 }) => limit > 0).map((hold) => hold.permits));
    const leastLimit = least(limits);
    const ends = holds.map((hold) => this.endsAt(hold));
    const alive = holds.filter((hold) => this.isAlive(hold));
    const exclusive =
      largest(alive.filter(({ isRevoked }) => !isRevoked).map(({ holder }) => holder)) ??
      largest(holds.map((hold) => this.valueOf(hold)));
    const shared = leastLimit === 0 ? SHARED_BY_READERS : sharedByPermits() + permits;
    return {
      value: leastLimit === undefined ? (exclusive ?? "") : shared,
      isShared: leastLimit !== undefined,
      isOver: alive.length === 0,
      permits,
      leastLimit,
      mostLimit: limits.length === 0 ? undefined : Math.max(...limits),
      firstEnds: Math.min(...ends),
      lastEnds: Math.max(...ends),
    };
  }

  /** Returns the value of a hold, revoked or not. */
  own(key: string, requestId: string): string | undefined {
    const hold = this.find(key, requestId);
    return hold !== undefined && this.isAlive(hold) ? this.valueOf(hold) : undefined;
  }

  /** Returns the permits that are left. A reader gets 1 or 0. */
  room(state: KeyState | undefined, limit: number | undefined): number {
    if (limit === undefined || state?.leastLimit === undefined) return 0;
    if (limit === 0 || state.leastLimit === 0) return limit === 0 && state.leastLimit === 0 ? 1 : 0;
    return Math.min(limit, state.leastLimit) - state.permits;
  }

  // ---- the queue of a key -----------------------------------------------------------------------------

  /** Returns the first waiter that asked in time. Removes dead waiters in front of it. */
  firstWaiter(key: string): FirstWaiter {
    const waiters = this.waiters(key);
    const first = waiters
      .slice(0, MOST_DEAD_AT_ONCE + 1)
      .find(({ expiresAt }) => expiresAt > this.server.now());
    if (first === undefined) {
      this.#setWaiters(key, waiters.slice(MOST_DEAD_AT_ONCE));
      return { ticket: undefined, inbox: "", isAfterDead: waiters.length > MOST_DEAD_AT_ONCE };
    }
    this.#setWaiters(
      key,
      waiters.filter(({ turn }) => turn >= first.turn),
    );
    return { ticket: first.ticket, inbox: first.inbox, isAfterDead: false };
  }

  onlyReadersWait(key: string): boolean {
    return this.waiters(key).every(({ isReader, expiresAt }) => isReader || expiresAt <= this.server.now());
  }

  /** Whether there is a waiter that a caller with this limit must not overtake. */
  mustWait(key: string, limit: number | undefined): boolean {
    if (this.waiters(key).length === 0 || (limit === 0 && this.onlyReadersWait(key))) return false;
    const { ticket, isAfterDead } = this.firstWaiter(key);
    return ticket !== undefined || isAfterDead;
  }

  keepTicket({ key, ticket = "", inbox = "", permit_limit: limit }: RequestRow): void {
    const expiresAt = this.server.now() + TICKET_TIME_MS;
    const waiters = this.waiters(key);
    const isReader = limit === 0;
    if (waiters.some((waiter) => waiter.ticket === ticket)) {
      this.#waiters.set(
        key,
        waiters.map((waiter) =>
          waiter.ticket === ticket
            ? { ...waiter, expiresAt, inbox, isReader: waiter.isReader || isReader }
            : waiter,
        ),
      );
    } else {
      const turn = (waiters.at(-1)?.turn ?? 0) + 1;
      this.#waiters.set(key, [...waiters, { key, turn, ticket, inbox, isReader, expiresAt }]);
    }
  }

  wake({ ticket, inbox }: FirstWaiter): void {
    if (inbox !== "" && ticket !== undefined) this.wakeUps.push([inbox, ticket]);
  }

  reserve(key: string, first: FirstWaiter & { readonly ticket: string }): void {
    this.deleteWaiter(key, first.ticket);
    this.#upsert(key, reservedFor(first.ticket), CLAIM_TIME_MS);
    this.server.onReserved?.(key, first.ticket);
    this.wake(first);
  }

  /** Keeps the key closed after a hold. */
  close(key: string, requestId: string, ms: number): void {
    this.#upsert(key, closedAfter(requestId), ms);
  }

  #upsert(key: string, holder: string, ms: number): void {
    const expiresAt = this.server.now() + ms;
    const before = this.find(key, holder);
    if (before === undefined) this.insert({ key, holder, expiresAt, limit: undefined, permits: 1 });
    else this.update(before, { expiresAt, isReleased: false });
  }

  /** Reserves the key for its first waiter when a hold has ended. If others still hold it, only wakes that waiter. */
  passOn(key: string): void {
    const { ticket, ...first } = this.firstWaiter(key);
    if (ticket === undefined) return;
    if (this.holds(key).length > 0) this.wake({ ...first, ticket });
    else this.reserve(key, { ...first, ticket });
  }

  // ---- grants -----------------------------------------------------------------------------------------

  drawToken(key: string): number {
    const now = this.server.epochMicroseconds();
    const token = Math.max((this.#tokens.get(key) ?? -Infinity) + 1, now);
    this.#tokens.set(key, token + FENCING_STRIDE - 1);
    return token;
  }

  grant(request: RequestRow, state: KeyState | undefined): Grant | Refusal {
    const { key, request_id: holder, permit_limit: limit, permits = 1, lock_ms: ms } = request;
    if (this.find(key, holder) !== undefined) {
      // The command ran twice, and its hold is over.
      return { granted: false, holder: guardedAfter(holder), free_in_ms: null, last: false };
    }
    let count = 1;
    let otherLimit: number | undefined;
    if (limit !== undefined && limit > 0) {
      count = Math.min(permits, limit);
      if (state !== undefined) {
        count = Math.min(count, this.room(state, limit));
        otherLimit = [state.leastLimit, state.mostLimit].find((one) => one !== limit);
      }
    }
    this.insert({ key, holder, expiresAt: this.server.now() + ms, limit, permits: count });
    return {
      granted: true,
      token: request.fencing === true && limit === undefined ? String(this.drawToken(key)) : null,
      count,
      other_limit: otherLimit ?? null,
      waiters: limit !== undefined && this.mustWait(key, limit),
    };
  }

  // ---- renewal groups ---------------------------------------------------------------------------------

  createGroup(id: string, ms: number): void {
    if (!this.#groups.has(id)) this.#groups.set(id, { expiresAt: this.server.now() + ms, renewals: 0 });
  }

  /** Renews a group, and returns whether it did. */
  renewGroup({ id, renewals, lock_ms: ms, ended }: GroupRow): boolean {
    const group = this.#groups.get(id);
    const now = this.server.now();
    if (group === undefined || group.renewals !== renewals || group.expiresAt <= now) return false;
    if (ended.some(({ key, request_id: holder }) => this.find(key, holder)?.isReleased === false))
      return false;
    this.#groups.set(id, { expiresAt: Math.max(group.expiresAt, now + ms), renewals: renewals + 1 });
    return true;
  }

  /** Keeps the groups of these holds from being renewed again. */
  closeGroups(holds: readonly Hold[]): void {
    for (const { groupId = "" } of holds) {
      const group = this.#groups.get(groupId);
      if (group !== undefined) this.#groups.set(groupId, { ...group, renewals: -1 });
    }
  }

  /** Returns the holds that the group keeps. One that was released may still have a row, because a transaction has locked it. */
  membersOf(id: string): readonly Hold[] {
    return [...this.#holds.values()].flat().filter((hold) => hold.groupId === id && !hold.isReleased);
  }

  /** Deletes old rows of any keys, except locked ones. The model sweeps all rows, and the server some. */
  sweep(): void {
    const before = this.server.now() - SWEPT_AFTER_MS;
    for (const hold of [...this.#holds.values()].flat()) {
      if (hold.expiresAt >= before || this.isLocked(hold)) continue;
      if (!hold.isReleased && this.#groups.has(hold.groupId ?? "")) continue;
      this.delete(hold);
      this.server.onRemoved?.(hold);
    }
    for (const [id, { expiresAt }] of this.#groups) if (expiresAt < before) this.#groups.delete(id);
    for (const [key, waiters] of this.#waiters) {
      this.#setWaiters(
        key,
        waiters.filter(({ expiresAt }) => expiresAt >= before),
      );
    }
  }
}

/** A second row with the same key and holder. The server rejects the statement with 23505. */
export class DuplicateKey extends Error {}

const NONE: readonly never[] = [];

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

function least(numbers: readonly number[]): number | undefined {
  return numbers.length === 0 ? undefined : Math.min(...numbers);
}

function largest(texts: readonly string[]): string | undefined {
  return texts.toSorted().at(-1);
}
