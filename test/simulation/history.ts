import * as fc from "fast-check";
import type { AcquireReply, AcquireRequest, Released, Store } from "../../runtime/store";

/** All times of a history are multiples of this: so none ends a hair before or after a step. */
export const TICK_MS = 500;
const KEYS = 2;
const CALLERS = 6;
export const PROCESSES = 2;
export const STEPS = 40;

/** One step of a history. Callers are numbers: each belongs to one process, waits for one key, and may come again. */
export type Step =
  | { readonly kind: "nothing" }
  | { readonly kind: "pass"; readonly ticks: number }
  | { readonly kind: "forget scripts" }
  | { readonly kind: "acquire" | "wait" | "leave" | "release" | "renew" | "renew all"; readonly who: number }
  | { readonly kind: "hand on"; readonly who: number; readonly next: number };

const caller = fc.nat(KEYS * CALLERS - 1);

const step: fc.Arbitrary<Step> = fc.oneof(
  { withCrossShrink: true },
  { weight: 1, arbitrary: fc.constant({ kind: "nothing" } as const) },
  { weight: 10, arbitrary: fc.record({ kind: fc.constant("acquire" as const), who: caller }) },
  { weight: 30, arbitrary: fc.record({ kind: fc.constant("wait" as const), who: caller }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("leave" as const), who: caller }) },
  { weight: 20, arbitrary: fc.record({ kind: fc.constant("release" as const), who: caller }) },
  {
    weight: 15,
    arbitrary: fc.record({ kind: fc.constant("hand on" as const), who: caller, next: fc.nat(CALLERS - 1) }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("renew" as const), who: caller }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("renew all" as const), who: caller }) },
  {
    weight: 12,
    arbitrary: fc.record({ kind: fc.constant("pass" as const), ticks: fc.integer({ min: 1, max: 5 }) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "forget scripts" } as const) },
);

/** Of a fixed length, so that a shorter one is found by steps that do nothing. */
export const histories = fc.array(step, { minLength: STEPS, maxLength: STEPS, size: "max" });

/** One world in which a history happens. */
export interface Subject {
  readonly name: string;
  /** By process. */
  readonly stores: readonly Store[];
  pass(ms: number): Promise<void>;
  forgetScripts(): Promise<void>;
  /** Who was given a hint since the last look, in order, each in the process in which it waits. */
  hints(): Promise<string[]>;
}

/** What a history has to tell of a world, in words that are the same for all worlds. */
export class Telling {
  readonly #subject: Subject;
  readonly #prefix: string;
  readonly #tokens: number[] = [];
  readonly #waited = new Set<string>();
  /** How often each caller has come: it never comes twice under one `requestId`. */
  readonly #stays = new Map<number, number>();

  constructor(subject: Subject, prefix: string) {
    this.#subject = subject;
    this.#prefix = prefix;
  }

  async tell(now: Step): Promise<string> {
    const what = await this.#happen(now);
    const hints = await this.#subject.hints();
    return `${what}; hints: ${hints.map((requestId) => requestId.slice(0, 8)).join(" ")}`;
  }

  /** All who are left take the lock and give it back in turn: so nothing can be hidden in the queue. */
  async end(): Promise<string[]> {
    const told: string[] = [];
    for (let round = 0; round < 2; round += 1) {
      for (let who = 0; who < KEYS * CALLERS; who += 1) told.push(await this.tell({ kind: "renew", who }));
      for (let who = 0; who < KEYS * CALLERS; who += 1) told.push(await this.tell({ kind: "release", who }));
    }
    for (let who = 0; who < KEYS * CALLERS; who += 1) told.push(await this.tell({ kind: "leave", who }));
    return told;
  }

  async #happen(now: Step): Promise<string> {
    if (now.kind === "pass") await this.#subject.pass(now.ticks * TICK_MS);
    if (now.kind === "forget scripts") await this.#subject.forgetScripts();
    return "who" in now ? await this.#ask(now) : "";
  }

  async #ask(now: Extract<Step, { readonly who: number }>): Promise<string> {
    const { kind, who } = now;
    const request = this.#request(who);
    const { key, requestId } = request;
    const store = this.#storeOf(who);
    if (kind === "acquire") {
      // Who once waited goes on with it: only that takes its place from the queue.
      if (this.#waited.has(requestId)) return "has a place";
      return this.#asked(await store.acquire(request), false);
    }
    if (kind === "wait") {
      this.#waited.add(requestId);
      return this.#asked(await store.wait(request), true);
    }
    if (kind === "leave") {
      await store.leave(key, requestId);
      this.#comesAnew(who);
      return "left";
    }
    if (kind === "release") return this.#released(who, await store.release(key, requestId));
    if (kind === "hand on") return await this.#handOn(who, now.next);
    const all = Array.from({ length: KEYS * CALLERS }, (_, other) => this.#request(other));
    return (await store.renew(kind === "renew" ? [request] : all)).join();
  }

  /** To another caller of the same process, for the same key. */
  async #handOn(who: number, towards: number): Promise<string> {
    const others = Array.from({ length: KEYS * CALLERS }, (_, other) => other).filter(
      (other) => other !== who && keyOf(other) === keyOf(who) && processOf(other) === processOf(who),
    );
    const next = others[towards % others.length];
    if (next === undefined) return "nobody is next";
    const { key, requestId } = this.#request(who);
    const request = this.#request(next);
    this.#waited.add(request.requestId);
    return this.#released(who, await this.#storeOf(who).release(key, requestId, request));
  }

  #asked(reply: AcquireReply, isWait: boolean): string {
    if (reply.granted) return `granted ${reply.fresh ? "fresh" : "again"} ${this.#token(reply.fencingToken)}`;
    // To one who does not wait, Redis does not say when the key becomes free.
    if (!isWait || reply.freeInMs === undefined) return "held";
    return `held for ${Math.ceil(reply.freeInMs / TICK_MS) * TICK_MS}`;
  }

  #released(who: number, { outcome, handedOn, isQueued }: Released): string {
    if (outcome === "released") this.#comesAnew(who);
    if (isQueued === true) return `${outcome}, queued`;
    return handedOn === undefined ? outcome : `${outcome}, ${this.#asked(handedOn, false)}`;
  }

  /** Tokens by the order in which they were first seen; and they must rise. */
  #token(token: number | undefined): string {
    if (token === undefined) return "";
    if (!this.#tokens.includes(token)) this.#tokens.push(token);
    const risesTo = Math.max(...this.#tokens);
    return `token ${this.#tokens.indexOf(token)}${token < risesTo ? " which is not the largest" : ""}`;
  }

  #comesAnew(who: number): void {
    this.#stays.set(who, (this.#stays.get(who) ?? 0) + 1);
  }

  #request(who: number): AcquireRequest {
    const stay = String(this.#stays.get(who) ?? 0);
    return {
      key: `${this.#prefix}_${keyOf(who)}`,
      requestId: `who${String(who).padStart(2, "0")}x${stay.padStart(2, "0")}`.padEnd(32, "0"),
      lockTimeMs: (who % 3 === 0 ? 2 : 8) * TICK_MS,
      fencing: who % 4 < 2,
    };
  }

  #storeOf(who: number): Store {
    const store = this.#subject.stores[processOf(who)];
    if (store === undefined) throw new Error("Expected a store for each process");
    return store;
  }
}

const keyOf = (who: number): number => who % KEYS;
const processOf = (who: number): number => Math.floor(who / KEYS) % PROCESSES;
