import * as fc from "fast-check";
import { UNLIMITED } from "../../runtime/base/limits";
import type {
  EnqueueRequest,
  Inspection,
  ReleaseReply,
  RenewReply,
  RenewRequest,
  Store,
  WholeStore,
  AcquireReply,
} from "../../runtime/stores/port";

/** All times of a history are multiples of this, so nothing ends just before or after a step. */
export const TICK_MS = 500;
const KEYS = 2;
const CALLERS = 6;
/** The number of transactions that may be open at a time. */
const TRANSACTIONS = 3;
export const PROCESSES = 2;
export const STEPS = 40;
export const TIMEOUT_MS = 30_000;
/** Steps of the wall clock: back, beyond all times of a history, and forward, by less than a ticket lasts. */
const CLOCK_STEPS_MS = [-60_000, 2 * TICK_MS];

/** A command of one caller. Each caller is a number, and belongs to one process and one key. */
type Command =
  | {
      readonly kind:
        | "acquire"
        | "enqueue"
        | "dequeue"
        | "release"
        | "renew"
        | "renew all"
        | "peek"
        | "revoke"
        | "free"
        | "inspect";
      readonly who: number;
    }
  /** Commands of several callers in one batch of the first one's process. */
  | {
      readonly kind: "acquire many" | "enqueue many" | "release many";
      readonly who: number;
      readonly others: readonly number[];
    }
  | { readonly kind: "releaseAndEnqueue"; readonly who: number; readonly next: number };

/** One step of a history. */
export type Step =
  | Command
  | { readonly kind: "nothing" }
  /** Repeats an earlier command, `ago` commands later, as a duplicate or a late arrival. */
  | { readonly kind: "again"; readonly ago: number }
  | { readonly kind: "pass"; readonly ticks: number }
  | { readonly kind: "clock steps"; readonly ms: number }
  | { readonly kind: "forget scripts" }
  | GuardStep;

/** A step of a transaction of the application. */
type GuardStep =
  | { readonly kind: "begin"; readonly transaction: number; readonly isRepeatable: boolean }
  | { readonly kind: "guard"; readonly transaction: number; readonly who: number }
  | { readonly kind: "end"; readonly transaction: number };

const callers = fc.nat(KEYS * CALLERS - 1);

function of<Kind extends Command["kind"]>(kind: Kind): fc.Arbitrary<{ kind: Kind; who: number }> {
  return fc.record({ kind: fc.constant(kind), who: callers });
}

type Weighted = fc.WeightedArbitrary<Step>;

const STEPS_OF_ALL: readonly Weighted[] = [
  { weight: 1, arbitrary: fc.constant({ kind: "nothing" } as const) },
  { weight: 10, arbitrary: of("acquire") },
  { weight: 30, arbitrary: of("enqueue") },
  { weight: 6, arbitrary: of("dequeue") },
  { weight: 20, arbitrary: of("release") },
  {
    weight: 15,
    arbitrary: fc.record({
      kind: fc.constant("releaseAndEnqueue" as const),
      who: callers,
      next: fc.nat(CALLERS - 1),
    }),
  },
  { weight: 6, arbitrary: of("renew") },
  { weight: 2, arbitrary: of("renew all") },
  { weight: 2, arbitrary: of("peek") },
  { weight: 10, arbitrary: fc.record({ kind: fc.constant("again" as const), ago: fc.nat(9) }) },
  {
    weight: 12,
    arbitrary: fc.record({ kind: fc.constant("pass" as const), ticks: fc.integer({ min: 1, max: 5 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("clock steps" as const),
      ms: fc.constantFrom(...CLOCK_STEPS_MS),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "forget scripts" } as const) },
];

const transactions = fc.nat(TRANSACTIONS - 1);

function manyOf(kind: "acquire many" | "enqueue many" | "release many"): fc.Arbitrary<Step> {
  const others = fc.uniqueArray(callers, { minLength: 1, maxLength: 5 });
  return fc.record({ kind: fc.constant(kind), who: callers, others });
}

/** The steps that only PostgreSQL knows, or in which it differs from other stores. */
const STEPS_OF_GUARDS: readonly Weighted[] = [
  { weight: 6, arbitrary: of("revoke") },
  { weight: 4, arbitrary: of("free") },
  { weight: 3, arbitrary: of("inspect") },
  { weight: 12, arbitrary: manyOf("acquire many") },
  { weight: 4, arbitrary: manyOf("enqueue many") },
  { weight: 12, arbitrary: manyOf("release many") },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant("begin" as const),
      transaction: transactions,
      isRepeatable: fc.boolean(),
    }),
  },
  {
    weight: 20,
    arbitrary: fc.record({ kind: fc.constant("guard" as const), transaction: transactions, who: callers }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant("end" as const), transaction: transactions }),
  },
];

/** Histories of a fixed length. A shorter one contains steps that do nothing. */
function historiesOf(...steps: readonly Weighted[]): fc.Arbitrary<Step[]> {
  const step = fc.oneof({ withCrossShrink: true }, ...steps);
  return fc.array(step, { minLength: STEPS, maxLength: STEPS, size: "max" });
}

export const histories = historiesOf(...STEPS_OF_ALL);
export const historiesWithGuards = historiesOf(...STEPS_OF_ALL, ...STEPS_OF_GUARDS);

/** One world in which a history runs. */
export interface Subject {
  readonly name: string;
  /** By process. */
  readonly stores: readonly (WholeStore & Pick<Store, "transactions">)[];
  pass(ms: number): Promise<void>;
  /** Sets the wall clock, by which tickets end, forward, or back if `ms` is negative. */
  stepClock(ms: number): Promise<void>;
  forgetScripts(): Promise<void>;
  /** Returns the tickets that got a wake-up since the last call, in order. */
  wakeUps(): Promise<string[]>;
  /** Begins a transaction. In REPEATABLE READ, it sees only what is committed now. */
  begin?(isRepeatable: boolean): Promise<HistoryTransaction>;
  /** Returns all that is stored. */
  stored?(): Promise<string>;
}

/** A transaction of the application. */
export interface HistoryTransaction {
  query(sql: string): PromiseLike<unknown>;
  /** Commits it. */
  end(): Promise<unknown>;
}

/** Runs a history in a world, and describes each reply in words that are the same for all worlds. */
export class HistoryPlayer {
  readonly #subject: Subject;
  readonly #prefix: string;
  readonly #tokens: number[] = [];
  readonly #callers = Array.from({ length: KEYS * CALLERS }, (_, who) => new Caller(who));
  /** All commands that were sent, and that may be repeated. */
  readonly #sent: (() => Promise<string>)[] = [];
  readonly #transactions = new Map<number, HistoryTransaction>();

  constructor(subject: Subject, prefix: string) {
    this.#subject = subject;
    this.#prefix = prefix;
  }

  get name(): string {
    return this.#subject.name;
  }

  async play(now: Step): Promise<string> {
    const what = await this.#happen(now);
    const wakeUps = await this.#subject.wakeUps();
    const stored = (await this.#subject.stored?.()) ?? "";
    return `${what}; wakeUps: ${wakeUps.map(shortened).join(" ")}${stored}`;
  }

  /** Lets all remaining callers acquire and release the key in turn, so that nothing stays hidden in the queue. */
  async end(): Promise<string[]> {
    const replies: string[] = [];
    for (const transaction of this.#transactions.keys())
      replies.push(await this.play({ kind: "end", transaction }));
    for (let round = 0; round < 2; round += 1) {
      for (const kind of ["renew", "release"] as const) {
        for (const { who } of this.#callers) replies.push(await this.play({ kind, who }));
      }
    }
    // Also the holds of callers that hold a key several times.
    for (const caller of this.#callers) {
      for (const requestId of caller.holds) {
        const drop = { key: this.#keyOf(caller), requestId };
        const { released } = await this.#storeOf(caller.who).release(drop, TIMEOUT_MS);
        const wakeUps = (await this.#subject.wakeUps()).map(shortened).join(" ");
        replies.push(`${released ? "dropped" : "not dropped"}; ${wakeUps}`);
      }
    }
    // Also the tickets of commands that came late.
    for (const caller of this.#callers) {
      for (const ticket of caller.tickets()) {
        await this.#storeOf(caller.who).queue.dequeue(this.#keyOf(caller), ticket, TIMEOUT_MS);
        replies.push((await this.#subject.wakeUps()).map(shortened).join(" "));
      }
    }
    return replies;
  }

  async #happen(now: Step): Promise<string> {
    switch (now.kind) {
      case "nothing":
        return "";
      case "pass":
        await this.#subject.pass(now.ticks * TICK_MS);
        return "";
      case "clock steps":
        await this.#subject.stepClock(now.ms);
        return "";
      case "forget scripts":
        await this.#subject.forgetScripts();
        return "";
      case "again":
        return (await this.#sent.at(-1 - now.ago)?.()) ?? "nothing to do again";
      case "begin":
      case "guard":
      case "end":
        return await this.#transact(now);
      default: {
        const send = this.#command(now);
        this.#sent.push(send);
        return await send();
      }
    }
  }

  /** Returns the command with its current arguments, which stay the same however late or often it runs. */
  #command(now: Command): () => Promise<string> {
    const caller = this.#caller(now.who);
    const store = this.#storeOf(now.who);
    const key = this.#keyOf(caller);
    const { hold: held, ticket } = caller;
    switch (now.kind) {
      case "acquire": {
        const request = this.#request(caller);
        return async () => this.#acquired(await store.acquire(request, TIMEOUT_MS), caller, request);
      }
      case "enqueue": {
        const request = this.#request(caller);
        return async () => this.#acquired(await store.queue.enqueue(request, TIMEOUT_MS), caller, request);
      }
      case "dequeue":
        caller.comesAnew();
        return async () => {
          await store.queue.dequeue(key, ticket, TIMEOUT_MS);
          return "left";
        };
      case "revoke":
        return async () =>
          (await store.admin.revoke({ key, requestId: held }, TIMEOUT_MS)) ? "revoked" : "not revoked";
      case "release":
        return async () => dropped(await store.release({ key, requestId: held }, TIMEOUT_MS));
      case "free": {
        const request = { key, requestId: held, isForced: true };
        return async () => dropped(await store.release(request, TIMEOUT_MS));
      }
      case "inspect":
        return async () => inspected(await store.admin.inspect(key, TIMEOUT_MS));
      case "acquire many":
      case "enqueue many":
      case "release many":
        return this.#many(now.kind, store, [...new Set([now.who, ...now.others])]);
      case "releaseAndEnqueue": {
        const next = this.#another(now.who, now.next);
        // Only exclusive holders send this command.
        const { permits: _, count: __, ...request } = this.#request(next);
        return async () => {
          const reply = await store.queue.releaseAndEnqueue({ key, requestId: held }, request, TIMEOUT_MS);
          if (!reply.released) return `not dropped: ${shown(reply.holder)}`;
          return `dropped, ${typeof reply.next === "object" ? this.#acquired(reply.next, next, request) : reply.next}`;
        };
      }
      case "renew":
      case "renew all": {
        const holders = now.kind === "renew" ? [caller] : this.#callers;
        const requests = holders.map(
          ({ who, hold, wishes: { lockTimeMs, fencing, count } }): RenewRequest => {
            const name = keyNumbered(this.#prefix, keyOf(who));
            const kept = now.kind === "renew" ? 1 : count;
            const requestId = hold;
            return count === undefined || kept === undefined
              ? { key: name, requestId, lockTimeMs, fencing }
              : { key: name, requestId, lockTimeMs, fencing, count: kept };
          },
        );
        return async () =>
          (await store.renew(requests, TIMEOUT_MS)).map((reply) => this.#renewed(reply)).join(", ");
      }
      default:
        return async () => (await store.peek([key], TIMEOUT_MS)).map(shown).join(", ");
    }
  }

  #many(
    kind: "acquire many" | "enqueue many" | "release many",
    { batch }: WholeStore,
    whose: readonly number[],
  ): () => Promise<string> {
    const all = whose.map((who) => this.#caller(who));
    if (kind === "release many") {
      const holds = all.map((caller) => ({ key: this.#keyOf(caller), requestId: caller.hold }));
      return async () => {
        const replies = (await batch?.releaseMany(holds, TIMEOUT_MS)) ?? [];
        return replies.map((reply) => (reply instanceof Error ? String(reply) : dropped(reply))).join(", ");
      };
    }
    const sent = all.map((caller) => ({ caller, request: this.#request(caller) }));
    const requests = sent.map(({ request }) => request);
    return async () => {
      const replies =
        kind === "acquire many"
          ? await batch?.acquireMany(requests, TIMEOUT_MS)
          : await batch?.enqueueMany?.(requests, TIMEOUT_MS);
      return sent
        .map(({ caller, request }, index) => {
          const reply = replies?.[index];
          return reply === undefined || reply instanceof Error
            ? String(reply)
            : this.#acquired(reply, caller, request);
        })
        .join(", ");
    };
  }

  async #transact(now: GuardStep): Promise<string> {
    const open = this.#transactions.get(now.transaction);
    if (now.kind === "begin") {
      const begun = open ?? (await this.#subject.begin?.(now.isRepeatable));
      if (begun !== undefined) this.#transactions.set(now.transaction, begun);
      return "";
    }
    if (open === undefined) return "";
    if (now.kind === "guard") return await this.#guard(open, this.#caller(now.who));
    this.#transactions.delete(now.transaction);
    await open.end();
    return "";
  }

  async #guard(transaction: HistoryTransaction, caller: Caller): Promise<string> {
    const guarded = [{ key: this.#keyOf(caller), requestId: caller.hold }];
    const run = (sql: string): PromiseLike<unknown> => transaction.query(sql);
    try {
      const held = await this.#storeOf(caller.who).transactions?.guard(guarded, run);
      return held?.join() === "true" ? "guarded" : "not held";
    } catch (error) {
      return `not guarded: ${(error as Error & { readonly code?: string }).code}`;
    }
  }

  #request(caller: Caller): EnqueueRequest {
    const requestId = caller.newRequestId();
    return { ...caller.wishes, key: this.#keyOf(caller), requestId, ticket: caller.ticket };
  }

  #acquired(reply: AcquireReply, caller: Caller, { requestId }: EnqueueRequest): string {
    if (reply.acquired) caller.holds.push(requestId);
    if (reply.acquired) caller.hold = requestId;
    if (reply.acquired) {
      const count = reply.count === undefined ? "" : ` ${reply.count} times`;
      return `taken${count}${this.#token(reply.fencingToken)}${waits(reply)}`;
    }
    const { holder, freeInMs, isLast } = reply;
    const until = freeInMs === undefined ? "" : ` for ${Math.ceil(freeInMs / TICK_MS) * TICK_MS}`;
    return `held by ${shown(holder)}${until}${isLast === true ? ", and is the last" : ""}`;
  }

  #renewed(reply: RenewReply): string {
    if (reply instanceof Error) return String(reply);
    return reply.renewed
      ? `renewed${this.#token(reply.fencingToken)}${waits(reply)}`
      : `not renewed: ${shown(reply.holder)}`;
  }

  /** Names tokens by the order in which they were first seen, and marks those that do not rise. */
  #token(token: number | undefined): string {
    if (token === undefined) return "";
    if (!this.#tokens.includes(token)) this.#tokens.push(token);
    const risesTo = Math.max(...this.#tokens);
    return ` token ${this.#tokens.indexOf(token)}${token < risesTo ? " which is not the largest" : ""}`;
  }

  #caller(who: number): Caller {
    const caller = this.#callers[who];
    if (caller === undefined) throw new Error(`Expected a caller ${who}`);
    return caller;
  }

  /** Returns another caller of the same process for the same key. */
  #another(who: number, towards: number): Caller {
    const others = this.#callers.filter(
      (other) =>
        other.who !== who && keyOf(other.who) === keyOf(who) && processOf(other.who) === processOf(who),
    );
    return others[towards % others.length] ?? this.#caller(who);
  }

  #keyOf({ who }: Caller): string {
    return keyNumbered(this.#prefix, keyOf(who));
  }

  #storeOf(who: number): WholeStore & Pick<Store, "transactions"> {
    const store = this.#subject.stores[processOf(who)];
    if (store === undefined) throw new Error("Expected a store for each process");
    return store;
  }
}

/** Plays a history in two worlds. Returns the first difference, with all that came before it. */
export async function compare(
  steps: readonly Step[],
  one: HistoryPlayer,
  other: HistoryPlayer,
): Promise<string | undefined> {
  const replies: string[] = [];
  for (const now of steps) {
    const [reply, otherReply] = [await one.play(now), await other.play(now)];
    if (now.kind !== "nothing") replies.push(`${JSON.stringify(now)}: ${reply}`);
    if (reply !== otherReply) return `${replies.join("\n")}\n  but ${other.name}: ${otherReply}`;
  }
  const [end, otherEnd] = [await one.end(), await other.end()];
  const at = end.findIndex((line, index) => line !== otherEnd[index]);
  if (at < 0) return undefined;
  return `${replies.join("\n")}\nat the end: ${end[at]}\n  but ${other.name}: ${otherEnd[at]}`;
}

class Caller {
  readonly who: number;
  readonly wishes: {
    readonly lockTimeMs: number;
    readonly fencing: boolean;
    readonly permits?: number;
    readonly count?: number;
  };
  /** The request ID of its last hold, which may be over. At first, an ID that it has never sent. */
  hold: string;
  /** The request IDs of all its holds. */
  readonly holds: string[] = [];
  #requests = 0;
  #stays = 0;

  constructor(who: number) {
    this.who = who;
    this.hold = this.newRequestId();
    const lockTimeMs = (who % 3 === 0 ? 2 : 8) * TICK_MS;
    // For each key, two callers are exclusive, two want one or two permits, and two read.
    const [, , ...shared] = [1, 1, 3, 2, UNLIMITED, UNLIMITED];
    const permits = shared[Math.floor(who / KEYS) - 2];
    const count = permits === 3 ? 2 : undefined;
    this.wishes = {
      lockTimeMs,
      fencing: who % 4 < 2 && permits === undefined,
      ...(permits && { permits }),
      ...(count && { count }),
    };
  }

  get ticket(): string {
    return this.#placeOf(this.#stays);
  }

  /** Returns all tickets that it has ever had. */
  tickets(): string[] {
    return Array.from({ length: this.#stays + 1 }, (_, stay) => this.#placeOf(stay));
  }

  /** Returns an ID that no other command has. */
  newRequestId(): string {
    this.#requests += 1;
    return `who${numbered(this.who)}n${numbered(this.#requests)}`.padEnd(32, "0");
  }

  comesAnew(): void {
    this.#stays += 1;
  }

  #placeOf(stay: number): string {
    return `ace${numbered(this.who)}f${numbered(stay)}`.padEnd(32, "0"); // Hex, as all tickets are.
  }
}

/** The keys of the histories with this prefix. */
export function keysOf(prefix: string): string[] {
  return Array.from({ length: KEYS }, (_, n) => keyNumbered(prefix, n));
}

const keyNumbered = (prefix: string, n: number): string => `${prefix}_${n}`;
const keyOf = (who: number): number => who % KEYS;
const processOf = (who: number): number => Math.floor(who / KEYS) % PROCESSES;
const numbered = (n: number): string => String(n).padStart(2, "0");
const shortened = (id: string): string => id.replace(/0+$/, "");
/** A number of permits may count holds that are over, and that no command has removed yet. */
const shown = (holder: string | Error | undefined): string =>
  shortened(String(holder ?? "nobody").replace(/^shared:permits:\d+$/, "several"));
const dropped = (reply: ReleaseReply): string => {
  if (reply.released) return "dropped";
  return `not dropped: ${shown(reply.holder)}${reply.guardedBy === undefined ? "" : ", which is guarded"}`;
};
const inspected = ({ holds, waiting }: Inspection): string => {
  const lines = holds.map(
    ({ value, leftMs, permits = 1 }) => `${shown(value)} for ${leftMs} with ${permits}`,
  );
  return `${lines.toSorted().join(", ")}; ${waiting} wait`;
};
const waits = ({ hasWaiters = false }: { readonly hasWaiters?: boolean }): string =>
  hasWaiters ? ", and somebody waits" : "";
