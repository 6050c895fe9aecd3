import type { PostgresRow } from "../../../runtime/stores/postgres/client-port";
import type { WakeUp } from "../../../runtime/stores/postgres/statements";
import type { Acquired, EnqueueRequest } from "../../../runtime/stores/port";
import { isClosed, isReserved } from "../../../runtime/stores/value";
import type { Surroundings } from "../simulated-store";
import type { RestoredHold, Truth } from "../truth";
import { WorldServer } from "../world-server";
import { LeaseDatabase, readStatement, type Transaction } from "./database";
import type { EndReply, LeaseCommand, NextReply, RenewalReply } from "./lease-functions";
import type { Grant, Hold, Refusal, RequestRow, Rows } from "./lease-rows";

/** A connection, as the server sees it. */
export interface Backend {
  /** The channels on which it listens. */
  readonly channels: Set<string>;
  notify(payload: string): void;
}

/** A commit that does not wait for the disk is on it after this time. */
const FLUSHED_AFTER_MS = 600;

/** A transaction is ended after this time: `idle_in_transaction_session_timeout`. */
const LONGEST_TRANSACTION_MS = 10_000;

/** The server of a world with locks in PostgreSQL. A crash of it loses only commits that need not survive. */
export class SimulatedPostgres extends WorldServer {
  readonly database: LeaseDatabase;
  /** Reports a problem of the world. */
  readonly report: (problem: string) => void;
  readonly #truth: Truth;
  readonly #onExecuted: () => void;
  readonly #backends = new Set<Backend>();
  /** The open transactions of applications, with the timers that end them. */
  readonly #transactions = new Map<Transaction, () => void>();
  /** The rows that are surely on the disk, and those after each later commit. */
  #durable: Rows;
  #later: { readonly at: number; readonly rows: Rows }[] = [];
  #reserved: string[] = [];
  /** The request IDs of releases that came before the command that acquires the key. */
  readonly #releasedEarly = new Set<string>();
  readonly #below: (end: number) => number;

  constructor({ world, random, judge, onExecuted }: Surroundings) {
    super(world);
    const invariants = judge(() => this.clock.now());
    const { truth } = invariants;
    this.report = (problem) => invariants.report(problem);
    truth.reportsRemovals = true;
    this.#truth = truth;
    this.#onExecuted = onExecuted;
    this.#below = (end) => random.below(end);
    this.database = new LeaseDatabase({
      now: () => this.clock.now(),
      epochMicroseconds: () => Math.floor(this.clock.epochMicroseconds()),
      random: () => random.next(),
      onRemoved: ({ key, holder }) => truth.removed(key, holder),
      onReserved: (_, ticket) => this.#reserved.push(ticket),
      onReply: (command, requests, reply) => {
        this.#note(command as LeaseCommand, requests, reply);
        for (const ticket of this.#reserved.splice(0)) truth.reserved(ticket);
      },
      onGuarded: (transaction, { key, holder }) => truth.guards.passed(transaction, key, holder),
    });
    this.#durable = this.database.rows.snapshot;
  }

  // ---- statements -------------------------------------------------------------------------------------

  open(backend: Backend): void {
    this.#backends.add(backend);
  }

  close(backend: Backend): void {
    this.#backends.delete(backend);
  }

  /** Runs a statement of a store, as one transaction. */
  execute(backend: Backend, text: string, values: readonly unknown[]): readonly PostgresRow[] {
    const statement = readStatement(text, values);
    switch (statement.kind) {
      case "command":
        try {
          return this.#run(statement.command, statement.requests);
        } finally {
          this.#onExecuted();
        }
      case "listen":
        backend.channels.add(statement.channel);
        return [];
      case "notify":
        this.#notify(statement.wakeUps);
        return [];
      case "database ID":
        return [{ reply: LeaseDatabase.id }];
      default:
        return [];
    }
  }

  #run(command: LeaseCommand, requests: readonly unknown[]): readonly PostgresRow[] {
    const rows = this.database.run(command, requests);
    const replies = JSON.parse(String(rows[0]?.["reply"])) as readonly unknown[];
    this.#commit(this.mustLast(command, requests as readonly RequestRow[], replies));
    return rows;
  }

  #notify(wakeUps: readonly WakeUp[]): void {
    for (const [channel, payload] of wakeUps)
      for (const backend of this.#backends) if (backend.channels.has(channel)) backend.notify(payload);
  }

  /** Tells the truth about a request. */
  #note(command: LeaseCommand, [request, next]: readonly RequestRow[], reply: unknown): void {
    if (request === undefined) return;
    const truth = this.#truth;
    const { key, request_id: requestId } = request;
    switch (command) {
      case "acquire_v1":
      case "enqueue_v1":
        return this.#noteGrant(request, reply as Grant | Refusal);
      case "renew_v1":
        return this.#noteRenewal(request, reply as RenewalReply);
      case "release_v1":
        if ((reply as EndReply).released) truth.released(key, requestId, request.cooldown_ms);
        else if (truth.grantTo(requestId) === undefined) this.#releasedEarly.add(requestId);
        return;
      case "release_and_enqueue_v1": {
        const ended = reply as NextReply;
        if (!ended.released || next === undefined) return;
        truth.released(key, requestId);
        if (ended.next?.granted === true) truth.acquired(requestOf(next), acquiredBy(ended.next));
        else truth.enqueued(requestOf(next));
        return;
      }
      case "dequeue_v1":
        return truth.dequeued(key, request.ticket ?? "");
      case "revoke_v1":
        if (reply === true) truth.revoked(key, requestId);
        return;
      default:
        return;
    }
  }

  #noteGrant(request: RequestRow, reply: Grant | Refusal): void {
    if (reply.granted) {
      this.#truth.acquired(requestOf(request), acquiredBy(reply));
      if (this.#releasedEarly.has(request.request_id)) this.#truth.overstays(request.request_id);
    } else if (reply.holder !== request.request_id && this.#isQueued(request))
      this.#truth.enqueued(requestOf(request));
  }

  #isQueued({ key, ticket }: RequestRow): boolean {
    return this.database.rows.waiters(key).some((waiter) => waiter.ticket === ticket);
  }

  #noteRenewal(request: RequestRow, { renewed, token }: RenewalReply): void {
    if (!renewed) return;
    const { permits: count = Infinity } = request;
    const fencing = typeof token === "string" ? { fencingToken: Number(token) } : {};
    this.#truth.renewed({ ...requestOf(request), count }, { renewed: true, ...fencing });
  }

  // ---- what survives ----------------------------------------------------------------------------------

  /** Whether the command waits until its commit is on the disk. */
  mustLast(command: LeaseCommand, requests: readonly RequestRow[], replies: readonly unknown[]): boolean {
    switch (command) {
      case "renew_v1":
      case "renew_groups_v1":
      case "revoke_v1":
        return true;
      case "acquire_v1":
      case "enqueue_v1":
        return (replies as readonly (Grant | Refusal)[]).some(({ granted }) => granted);
      case "release_v1":
        return requests.some(({ cooldown_ms: cooldownMs }) => cooldownMs !== undefined);
      case "release_and_enqueue_v1":
        return (replies as readonly NextReply[]).some(({ next }) => (next ?? null) !== null);
      default:
        return false;
    }
  }

  #commit(isDurable: boolean): void {
    const rows = this.database.rows.snapshot;
    if (isDurable) this.#setDurable(rows);
    else this.#later.push({ at: this.world.now(), rows });
    const old = this.#later.filter(({ at }) => this.world.now() - at > FLUSHED_AFTER_MS);
    const flushed = old.at(-1);
    if (flushed === undefined) return;
    this.#durable = flushed.rows;
    this.#later = this.#later.slice(old.length);
  }

  #setDurable(rows: Rows): void {
    this.#durable = rows;
    this.#later = [];
  }

  protected onCrash(): void {
    for (const transaction of this.#transactions.keys()) this.end(transaction, false);
    this.#backends.clear();
    const kept = this.#later[this.#below(this.#later.length + 1) - 1]?.rows ?? this.#durable;
    this.#setDurable(kept);
    this.database.rows.restore(kept);
    const alive = [...kept.holds.values()].flat().filter((hold) => this.database.rows.isAlive(hold));
    this.#truth.restarted(
      alive.map((hold) => restored({ ...hold, expiresAt: this.database.rows.endsAt(hold) })),
    );
  }

  protected onJump(ms: number): void {
    if (ms > 0) this.#truth.steppedForward(ms);
    else this.#truth.steppedBack();
  }

  // ---- transactions of applications -------------------------------------------------------------------

  begin(isRepeatable: boolean): Transaction {
    const transaction = this.database.begin(isRepeatable);
    const cancel = this.world.after(LONGEST_TRANSACTION_MS, () => void this.end(transaction, false));
    this.#transactions.set(transaction, cancel);
    return transaction;
  }

  /** Commits the transaction or rolls it back. Returns whether it has committed. */
  end(transaction: Transaction, isToCommit: boolean): boolean {
    const cancel = this.#transactions.get(transaction);
    if (cancel === undefined) return false;
    cancel();
    this.#transactions.delete(transaction);
    const isCommitted = isToCommit && transaction.isOpen;
    this.#truth.guards.ended(transaction, isCommitted);
    transaction.end();
    return isCommitted;
  }

  // ---- what people do ---------------------------------------------------------------------------------

  async delete(key: string): Promise<void> {
    const [hold] = this.#holdsOf(key);
    if (hold === undefined) return;
    const [row] = this.#run("free_v1", [{ key, request_id: this.database.rows.valueOf(hold) }]);
    const [reply] = JSON.parse(String(row?.["reply"])) as readonly EndReply[];
    if (reply?.released === true) this.#truth.deleted(key, hold.holder);
    this.#notify(this.database.rows.wakeUps);
  }

  async revoke(key: string): Promise<void> {
    const holds = this.#holdsOf(key).map(({ holder }) => ({ key, request_id: holder }));
    if (holds.length > 0) this.#run("revoke_v1", holds);
  }

  /** Returns the holds of callers. */
  #holdsOf(key: string): readonly Hold[] {
    const { rows } = this.database;
    return rows
      .holds(key)
      .filter((hold) => rows.isAlive(hold) && !isReserved(hold.holder) && !isClosed(hold.holder));
  }

  async isForgotten(key: string): Promise<boolean> {
    const { functions } = this.database;
    const [probe, next] = ["e", "f"].map((digit) => ({ key, request_id: digit.repeat(32), lock_ms: 1 }));
    if (probe === undefined || next === undefined) return false;
    if (!functions.acquire(probe).granted) return false;
    const reply = functions.releaseAndEnqueue([probe, { ...next, ticket: "d".repeat(32) }]);
    return reply.released && (reply.next ?? null) !== null;
  }
}

/** Returns the request as the runtime made it. */
function requestOf({
  key,
  request_id: requestId,
  lock_ms: lockTimeMs,
  fencing = false,
  permit_limit: limit = 1,
  ticket,
}: RequestRow): EnqueueRequest {
  const permits = limit === 0 ? Infinity : limit;
  // A ticket that is undefined means that the request does not wait.
  return {
    key,
    requestId,
    lockTimeMs,
    fencing,
    permits,
    ...(ticket !== undefined && { ticket }),
  } as EnqueueRequest;
}

function acquiredBy({ count, token }: Grant): Acquired {
  return { acquired: true, count, ...(token !== null && { fencingToken: Number(token) }) };
}

function restored({ key, holder, limit = 1, permits: count, expiresAt }: Hold): RestoredHold {
  return { key, value: holder, permits: limit === 0 ? Infinity : limit, count, expiresAt };
}
