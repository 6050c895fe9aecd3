import { CLAIM_TIME_MS } from "../../../runtime/stores/port";
import { closedAfter, reservedFor, SHARED_BY_READERS, sharedByPermits } from "../../../runtime/stores/value";
import type { Command } from "../../../runtime/stores/postgres/statements";
import {
  LeaseRows,
  type Grant,
  type GroupRow,
  type Hold,
  type KeyState,
  type Refusal,
  type RequestRow,
  type Rows,
} from "./lease-rows";

/** The commands of the model. It knows neither announcements nor the commands for lists of locks. */
export type LeaseCommand = Exclude<Command, "announce_v1" | "locks_v1" | "announcements_v1">;

/** One in this many requests sweeps. */
const SWEEP_EVERY = 16;

export interface EndReply {
  readonly released: boolean;
  readonly holder?: string | null;
  readonly guarded_by?: string;
}

export interface NextReply extends EndReply {
  readonly next?: Grant | Refusal | null;
}

export interface RenewalReply {
  readonly renewed: boolean;
  readonly token?: string | null;
  readonly holder?: string | null;
  readonly waiters?: boolean;
  readonly joined?: boolean;
}

/** A hold that a transaction wants to guard. */
export interface Guarding {
  readonly key: string;
  readonly request_id: string;
}

/** The functions that the store calls. Each command is one transaction, and nothing happens in the middle of it. */
export class LeaseFunctions {
  readonly rows: LeaseRows;

  constructor(rows: LeaseRows) {
    this.rows = rows;
  }

  /** Runs a command. Returns its list of replies. */
  run(command: LeaseCommand, requests: readonly unknown[]): readonly unknown[] {
    const all = requests as readonly RequestRow[];
    const each = <Reply>(run: (request: RequestRow) => Reply): readonly Reply[] =>
      all.map((request) => this.#noted(command, [request], run(request)));
    /** Carries out the simplest requests first, as one statement for all of them does. */
    const plainFirst = <Reply>(
      plain: (request: RequestRow) => Reply | undefined,
      run: (request: RequestRow) => Reply,
    ): readonly Reply[] => {
      const early = all.map((request) => {
        const reply = plain(request);
        return reply === undefined ? undefined : this.#noted(command, [request], reply);
      });
      return all.map((request, index) => early[index] ?? this.#noted(command, [request], run(request)));
    };
    switch (command) {
      case "acquire_v1":
        return this.#sweeping(
          plainFirst(
            (request) => this.acquirePlain(request),
            (request) => this.acquire(request),
          ),
        );
      case "enqueue_v1":
        return this.#sweeping(each((request) => this.enqueue(request)));
      case "renew_v1":
        return plainFirst(
          (request) =>
            all.length > 1 || request.group_id !== undefined ? this.renewPlain(request) : undefined,
          (request) => this.renew(request),
        );
      case "renew_groups_v1":
        return (requests as readonly GroupRow[]).map((request) => this.renewGroup(request));
      case "release_v1":
        return plainFirst(
          (request) => this.releasePlain(request),
          (request) => this.release(request),
        );
      case "free_v1":
        return each((request) => this.free(request));
      case "release_and_enqueue_v1":
        return [this.#noted(command, all, this.releaseAndEnqueue(all))];
      case "dequeue_v1":
        each((request) => this.dequeue(request));
        return [];
      case "revoke_v1":
        return each((request) => this.revoke(request));
      case "peek_v1":
        return (requests as readonly string[]).map((key) => this.peek(key));
      default:
        return (requests as readonly string[]).map((key) => this.inspect(key));
    }
  }

  #noted<Reply>(command: string, requests: readonly RequestRow[], reply: Reply): Reply {
    this.rows.server.onReply?.(command, requests, reply);
    return reply;
  }

  #sweeping<Reply>(replies: readonly Reply[]): readonly Reply[] {
    const { server } = this.rows;
    if (server.random() * SWEEP_EVERY < replies.length) this.rows.sweep();
    return replies;
  }

  // ---- grants -----------------------------------------------------------------------------------------

  /** Acquires a key that has no row at all, if the caller is exclusive and needs no token. */
  acquirePlain(request: RequestRow): Grant | Refusal | undefined {
    const { rows } = this;
    const isPlain = request.permit_limit === undefined && request.fencing !== true;
    return isPlain && rows.holds(request.key).length === 0 ? rows.grant(request, undefined) : undefined;
  }

  acquire(request: RequestRow): Grant | Refusal {
    const { rows } = this;
    const { key, request_id: requestId, permit_limit: limit } = request;
    const state = rows.readKey(key);
    if (state === undefined) return rows.grant(request, state);
    const own = state.isShared ? rows.own(key, requestId) : undefined;
    const mayShare = state.isShared && own === undefined && rows.room(state, limit) > 0;
    if (mayShare && !rows.mustWait(key, limit)) return rows.grant(request, state);
    return refusal(own ?? state.value);
  }

  enqueue(request: RequestRow): Grant | Refusal {
    const { rows } = this;
    const { key, request_id: requestId, permit_limit: limit, ticket = "" } = request;
    const state = rows.readKey(key);
    const isOwn = state?.isShared === true && limit !== undefined ? rows.own(key, requestId) : undefined;
    const own = isOwn ?? (state?.value === requestId ? requestId : undefined);
    if (own !== undefined) return refusal(own); // The command ran twice.
    const reservation = rows.find(key, reservedFor(ticket));
    if (reservation !== undefined && state?.value === reservation.holder) {
      rows.delete(reservation);
      return this.#grantInTurn(request, undefined);
    }
    rows.keepTicket(request);
    const hasRoom = rows.room(state, limit) > 0;
    let found = state;
    if (state === undefined || hasRoom) {
      if (limit === 0 && hasRoom && rows.onlyReadersWait(key)) return this.#grantInTurn(request, state);
      const first = rows.firstWaiter(key);
      if (first.ticket === ticket) return this.#grantInTurn(request, state);
      if (hasRoom) rows.wake(first);
      else if (first.ticket !== undefined) {
        rows.reserve(key, { ...first, ticket: first.ticket });
        found = reserved(first.ticket, rows.server.now() + CLAIM_TIME_MS);
      }
    }
    const first = rows.firstWaiter(key);
    const freeInMs = first.ticket === ticket ? this.#freeInMs(found, limit) : first.isAfterDead ? 1 : null;
    const isLast = limit !== undefined && rows.waiters(key).at(-1)?.ticket === ticket;
    return refusal(found?.value, freeInMs, isLast);
  }

  #grantInTurn(request: RequestRow, state: KeyState | undefined): Grant | Refusal {
    const { rows } = this;
    const { key, ticket, permit_limit: limit } = request;
    rows.deleteWaiter(key, ticket);
    const grant = rows.grant(request, state);
    if (rows.room(rows.readKey(key), limit) > 0) rows.wake(rows.firstWaiter(key));
    return grant;
  }

  #freeInMs(state: KeyState | undefined, limit = 0): number | null {
    if (state === undefined) return null;
    const { now, random } = this.rows.server;
    const ends = limit > 0 && (state.leastLimit ?? 0) > 0 ? state.firstEnds : state.lastEnds;
    const leftMs = Math.ceil(ends - now());
    return state.isOver || leftMs <= 0 ? Math.round(50 + 200 * random()) : leftMs;
  }

  /** Renews an exclusive hold, which may join a new group. */
  renewPlain(request: RequestRow): RenewalReply | undefined {
    const { rows } = this;
    const { key, request_id: requestId, lock_ms: ms, group_id: groupId } = request;
    const held = rows.find(key, requestId);
    if (held === undefined || request.fencing === true || held.limit !== undefined) return undefined;
    if (held.isRevoked || !rows.isAlive(held)) return undefined;
    if (groupId !== undefined && held.groupId !== undefined && held.groupId >= groupId) return undefined;
    const expiresAt = Math.max(rows.endsAt(held), rows.server.now() + ms);
    rows.update(held, { expiresAt, ...(groupId !== undefined && { groupId }) });
    if (groupId !== undefined) rows.createGroup(groupId, ms);
    return { renewed: true, joined: true };
  }

  renewGroup(request: GroupRow): boolean {
    if (!this.rows.renewGroup(request)) return false;
    for (const { key, holder } of this.rows.membersOf(request.id))
      this.#noted("renew_v1", [{ key, request_id: holder, lock_ms: request.lock_ms }], { renewed: true });
    return true;
  }

  renew(request: RequestRow): RenewalReply {
    const { rows } = this;
    const { key, request_id: requestId, permits, lock_ms: ms } = request;
    const held = rows.find(key, requestId);
    if (held === undefined || held.isRevoked || !rows.isAlive(held)) {
      const holder = rows.own(key, requestId) ?? rows.readKey(key)?.value ?? null;
      return { renewed: false, holder };
    }
    const { limit } = held;
    const expiresAt = Math.max(held.expiresAt, rows.server.now() + ms);
    const kept =
      limit !== undefined && limit > 0 ? Math.min(held.permits, permits ?? Infinity) : held.permits;
    rows.update(held, { expiresAt, permits: kept });
    if (kept < held.permits) rows.wake(rows.firstWaiter(key));
    return {
      renewed: true,
      token: request.fencing === true && limit === undefined ? String(rows.drawToken(key)) : null,
      waiters: limit !== undefined && rows.mustWait(key, Math.min(limit, 1)),
    };
  }

  // ---- ends -------------------------------------------------------------------------------------------

  /** Ends an exclusive hold for which nobody waits. */
  releasePlain({ key, request_id: requestId, cooldown_ms: cooldownMs }: RequestRow): EndReply | undefined {
    const { rows } = this;
    const hold = rows.find(key, requestId);
    if (hold === undefined || hold.limit !== undefined || cooldownMs !== undefined) return undefined;
    if (!rows.isAlive(hold) || rows.isLocked(hold) || rows.waiters(key).length > 0) return undefined;
    rows.delete(hold);
    return { released: true };
  }

  release({ key, request_id: requestId, cooldown_ms: cooldownMs }: RequestRow): EndReply {
    const { rows } = this;
    if (cooldownMs !== undefined && rows.own(key, closedAfter(requestId)) !== undefined)
      return { released: true }; // The command ran twice.
    if (!this.endHold(key, requestId)) return this.#notReleased(key);
    if (cooldownMs === undefined) {
      rows.removeOver(key);
      rows.passOn(key);
    } else rows.close(key, requestId, cooldownMs);
    return { released: true };
  }

  releaseAndEnqueue([held, request]: readonly RequestRow[]): NextReply {
    if (held === undefined || request === undefined) throw new Error("Expected two requests");
    const { rows } = this;
    const { key } = held;
    if (!this.endHold(key, held.request_id)) return this.#notReleased(key);
    rows.keepTicket(request);
    rows.removeOver(key);
    const { ticket, ...first } = rows.firstWaiter(key);
    let next: Grant | Refusal | null = null;
    if (rows.holds(key).length > 0) rows.wake({ ...first, ticket });
    else if (ticket === request.ticket) next = this.#grantInTurn(request, undefined);
    else if (ticket !== undefined) rows.reserve(key, { ...first, ticket });
    return { released: true, next };
  }

  /** Ends a hold, and returns whether there was one. A row that is locked stays. */
  endHold(key: string, requestId: string): boolean {
    const { rows } = this;
    const hold = rows.find(key, requestId);
    if (hold === undefined || !rows.isAlive(hold)) return false;
    if (rows.isLocked(hold)) rows.update(hold, { isReleased: true });
    else rows.delete(hold);
    return true;
  }

  /** Frees a key that has this value. A row that is locked stays. */
  free({ key, request_id: value }: RequestRow): EndReply {
    const { rows } = this;
    const wanted = rows.holds(key).filter((hold) => rows.valueOf(hold) === value);
    const freed = wanted.filter((hold) => !rows.isLocked(hold));
    rows.closeGroups(rows.holds(key));
    if (wanted.length === 0) return this.#notReleased(key);
    if (freed.length === 0) return { released: false, holder: value, guarded_by: "unknown backend" };
    rows.delete(...freed);
    rows.removeOver(key);
    rows.passOn(key);
    return { released: true };
  }

  #notReleased(key: string): EndReply {
    return { released: false, holder: this.rows.readKey(key)?.value ?? null };
  }

  dequeue({ key, ticket = "" }: RequestRow): void {
    const { rows } = this;
    const wasQueued = rows.deleteWaiter(key, ticket);
    const reservation = rows.find(key, reservedFor(ticket));
    if (reservation !== undefined) rows.delete(reservation);
    if (reservation !== undefined || (wasQueued && rows.readKey(key)?.isShared === true)) rows.passOn(key);
  }

  /** Revokes a hold. Another row takes the place of its row, unless that is locked. */
  revoke({ key, request_id: requestId }: RequestRow): boolean {
    const { rows } = this;
    const isWanted = (hold: Hold): boolean =>
      hold.holder === requestId || (hold.isRevoked && rows.valueOf(hold) === requestId);
    rows.closeGroups(rows.holds(key));
    const hold = rows.holds(key).find((one) => rows.isAlive(one) && isWanted(one));
    if (hold === undefined) return false;
    if (rows.isLocked(hold)) rows.update(hold, { isRevoked: true });
    else {
      rows.delete(hold);
      const { groupId: _, ...others } = hold;
      rows.insert({ ...others, expiresAt: rows.endsAt(hold), isRevoked: true });
    }
    return true;
  }

  // ---- for people -------------------------------------------------------------------------------------

  peek(key: string): string | null {
    const { rows } = this;
    const alive = rows.holds(key).filter((hold) => rows.isAlive(hold));
    const [largest] = alive
      .map((hold) => rows.valueOf(hold))
      .toSorted((one, other) => (one < other ? 1 : -1));
    if (largest === undefined) return null;
    const limits = alive.map(({ limit }) => limit).filter((limit) => limit !== undefined);
    if (limits.length === 0) return largest;
    if (limits.every((limit) => limit === 0)) return SHARED_BY_READERS;
    return sharedByPermits(alive.reduce((sum, { permits }) => sum + permits, 0));
  }

  inspect(key: string): unknown {
    const { rows } = this;
    const now = rows.server.now();
    const held = rows.holds(key).filter((hold) => rows.isAlive(hold) || rows.isLocked(hold));
    return {
      holds: held.map((hold) => ({
        value: rows.valueOf(hold),
        left_ms: Math.max(rows.endsAt(hold) - now, 0),
        permits: hold.limit !== undefined && hold.limit > 0 ? hold.permits : null,
      })),
      waiting: rows.waiters(key).filter(({ expiresAt }) => expiresAt > now).length,
    };
  }

  // ---- guards -----------------------------------------------------------------------------------------

  /**
   * Locks the rows of the holds for a transaction. Returns the request IDs that are still held.
   *
   * @param seen the rows when a transaction in REPEATABLE READ began. It reads these, and locks the rows that they became
   * @throws {SerializationFailure} if such a row is gone
   */
  guard(
    transaction: object,
    wanted: readonly Guarding[],
    seen: Rows = this.rows.snapshot,
  ): readonly string[] {
    const found = wanted
      .map(({ key, request_id: requestId }) =>
        (seen.holds.get(key) ?? []).find(({ holder }) => holder === requestId),
      )
      .filter((hold): hold is Hold => hold !== undefined && !hold.isRevoked && !hold.isReleased);
    for (const { key, row } of found) {
      if (!this.rows.holds(key).some((hold) => hold.row === row)) throw new SerializationFailure();
      this.rows.lock(transaction, row);
    }
    for (const hold of found) this.rows.server.onGuarded?.(transaction, hold);
    return found.map(({ holder }) => holder);
  }
}

/** A transaction in REPEATABLE READ wants to lock a row that another one has deleted. */
export class SerializationFailure extends Error {}

function refusal(
  holder: string | undefined,
  freeInMs: number | null = null,
  isLast: boolean = false,
): Refusal {
  return { granted: false, holder: holder ?? null, free_in_ms: freeInMs, last: isLast };
}

/** Returns the state of a key that is reserved. */
function reserved(ticket: string, until: number): KeyState {
  return {
    value: reservedFor(ticket),
    isShared: false,
    isOver: false,
    permits: 0,
    leastLimit: undefined,
    mostLimit: undefined,
    firstEnds: until,
    lastEnds: until,
  };
}
