// N masters that know nothing of each other, as one store. A lock is held while a majority of them has its requestId, and
// by nothing else. What each method does, and why two never hold one lock, is in docs/quorum.md.

import { systemClock, type Clock } from "../../clock";
import { milliseconds, type Duration } from "../../duration";
import { LockMisconfiguredError, LockOptionError } from "../../errors";
import { Roster } from "../../roster";
import { isOptions, shown } from "../../shown";
import { Suspension } from "../../suspension";
import type {
  DropReply,
  DropRequest,
  NextReply,
  NotDropped,
  PlaceRequest,
  Renewed,
  RenewReply,
  RenewRequest,
  Store,
  StoreListener,
  Taken,
  TakeReply,
  TakeRequest,
} from "../port";
import type { RedisAddress } from "../redis/address";
import type { RedisClient } from "../redis/client";
import { isReserved } from "../value";
import { Hold } from "./hold";
import { Master, type Member } from "./master";
import { inOrder } from "./order";
import { redisMembers } from "./redis-member";
import { Tally, type Votes } from "./tally";

export interface QuorumOptions {
  /**
   * No lock may ask for a longer `lockTime`, and for so long a master does not count after its start. The same in all
   * processes. Default `"1m"`.
   */
  readonly longestLockTime?: Duration;
}

/**
 * Locks in several Redis masters that know nothing of each other: a lock is held while a majority of them says so, and so
 * outlives the loss of the others. All processes are given the same masters, in the same order.
 *
 * @param masters three at least: ioredis clients of one node each, which stay yours to close, or `redis://` URLs
 * @throws {LockOptionError} on what cannot be a master, and on one that is given twice
 */
export function quorumStore(masters: readonly (RedisClient | RedisAddress)[], options: QuorumOptions = {}): Store {
  const unknown = isOptions(options) ? Object.keys(options).find((name) => name !== "longestLockTime") : "";
  if (unknown !== undefined) {
    throw new LockOptionError(
      `Expected quorumStore(masters) or quorumStore(masters, { longestLockTime: "1m" }), got ${shown(options)}`,
    );
  }
  const longestLockTimeMs = milliseconds("longestLockTime", options.longestLockTime ?? "1m", 100);
  return new QuorumStore(redisMembers(masters), systemClock, longestLockTimeMs);
}

/** So much of the time of a command each of its steps may take: past the gate, the next gate, and to the others. */
const STEPS = 4;
const LEAST_PATIENCE_MS = 20;
/** What is under way when the store is closed may take so long. */
const LAST_PATIENCE_MS = 250;

/** How soon to try again, at most, where several asked at once and none had a majority. */
const LONGEST_SPLIT_PAUSE_MS = 64;

const SWEEP_FROM_SIZE = 1_024;

/** How a master is asked for a hold. */
type Ask = (store: Store) => Promise<TakeReply>;

const NO_ANSWER = new Error("it does not answer");
const UNPROVEN = new Error("it is not known to have had the key all the time");
const RENEWED: Renewed = { renewed: true };
const DROPPED: DropReply = { dropped: true };

export class QuorumStore implements Store {
  readonly #masters: readonly Master[];
  readonly #clock: Clock;
  readonly #suspension: Suspension;
  readonly #longestLockTimeMs: number;
  readonly #votes: Votes;
  /** What is asked for, and what was said to be taken and was not given back. */
  readonly #holds = new Roster<string, Hold>();
  #sweepAtSize = SWEEP_FROM_SIZE;
  /** Where those who wait stand in line. */
  readonly #standing = new Map<string, Master>();
  readonly #listeners = new Set<StoreListener>();
  readonly #warnings = new Set<string>();
  readonly #deafen: () => void;

  /** @param majority another one is for tests of those who are to find out */
  constructor(
    members: readonly Member[],
    clock: Clock,
    longestLockTimeMs: number,
    majority = Math.floor(members.length / 2) + 1,
  ) {
    this.#clock = clock;
    this.#suspension = new Suspension(clock);
    this.#longestLockTimeMs = longestLockTimeMs;
    this.#votes = { all: members.length, majority };
    this.#masters = members.map((member, index) => {
      const name = `master ${index + 1}`;
      return new Master(name, member, clock, longestLockTimeMs, (reason) => this.#warn(`${name} ${reason}`));
    });
    const deafen = this.#masters.map((master) =>
      master.member.store.listen({
        onHint() {},
        onReconnect: () => master.onReconnect(),
        onWarning() {},
      }),
    );
    this.#deafen = () => deafen.forEach((end) => end());
  }

  // ---- who holds --------------------------------------------------------------------------------------

  async take(request: TakeRequest, withinMs: number): Promise<TakeReply> {
    const patienceMs = patienceOf(withinMs);
    const { reply } = await this.#elect(request, patienceMs, (store) =>
      store.take(plain(request), patienceMs),
    );
    return reply;
  }

  /** The gate is asked first, then the others; what is not a majority is given back, the gate last. */
  async #elect(
    request: TakeRequest,
    patienceMs: number,
    askGate: Ask,
  ): Promise<{ readonly gate: Master; readonly reply: TakeReply }> {
    const refusal = this.#refusal(request);
    if (refusal !== undefined) throw refusal;
    const hold = this.#newHold(request);
    const { gate, reply } = await this.#passGate(hold, patienceMs, askGate);
    if (hold.at.has(gate)) return { gate, reply: await this.#askOthers(hold, gate, patienceMs) };
    void this.#giveUp(hold, patienceMs); // A gate that was passed over may have it.
    return { gate, reply };
  }

  /** Why a lock of that lock time cannot be had, if so. */
  #refusal({ lockTimeMs }: TakeRequest): Error | undefined {
    if (lockTimeMs <= this.#longestLockTimeMs) return undefined;
    return new LockMisconfiguredError(
      `a lock asks for a lockTime of ${lockTimeMs} ms, and longestLockTime is ${this.#longestLockTimeMs} ms: give quorumStore(masters, { longestLockTime }) a longer one, in all processes`,
    );
  }

  #newHold(request: TakeRequest): Hold {
    if (this.#holds.size >= this.#sweepAtSize) this.#sweep();
    const hold = new Hold(request, this.#votes, this.#clock.now());
    // Where a command is carried out twice, the first is what counts.
    if (this.#holds.get(request.requestId) === undefined) this.#holds.set(request.requestId, hold);
    return hold;
  }

  /** Those that were left to expire must not pile up. */
  #sweep(): void {
    const now = this.#clock.now();
    for (const [, hold] of this.#holds.entries()) if (hold.isForgotten(now)) this.#end(hold);
    this.#sweepAtSize = Math.max(SWEEP_FROM_SIZE, 2 * this.#holds.size);
  }

  /** The first in the key's order that answers is the gate. */
  async #passGate(
    hold: Hold,
    patienceMs: number,
    askGate: Ask,
  ): Promise<{ readonly gate: Master; readonly reply: TakeReply }> {
    for (const gate of this.#gates(hold.request.key, patienceMs)) {
      const reply = await this.#within(patienceMs, this.#askFor(hold, gate, askGate, patienceMs));
      if (reply !== undefined) return { gate, reply };
      if (hold.tally.of(gate) === undefined) hold.tally.silent(gate, NO_ANSWER);
    }
    const error = hold.tally.error();
    await this.#giveUp(hold, patienceMs);
    throw error;
  }

  /** As many as there can be dead ones, and one more: first those that answered lately. */
  #gates(key: string, patienceMs: number): readonly Master[] {
    const order = inOrder(key, this.#masters);
    const isWell = (master: Master): boolean => master.answers(patienceMs);
    const gates = [...order.filter(isWell), ...order.filter((master) => !isWell(master))];
    return gates.slice(0, this.#votes.all - this.#votes.majority + 1);
  }

  async #askOthers(hold: Hold, gate: Master, patienceMs: number): Promise<TakeReply> {
    const { tally, request, asked } = hold;
    const order = inOrder(request.key, this.#masters);
    for (const master of order) {
      if (asked.has(master)) continue;
      if (!master.mayBeAsked(patienceMs)) tally.silent(master, NO_ANSWER);
      else void this.#askFor(hold, master, (store) => store.take(plain(request), patienceMs), patienceMs);
    }
    await this.#heard(asked.values(), () => tally.isYes || tally.isNo, patienceMs);
    try {
      if (tally.isYes) return await this.#declare(hold, patienceMs);
    } catch (error) {
      await this.#giveUp(hold, patienceMs, gate);
      throw error;
    }
    const { isNo } = tally;
    const error = tally.error();
    const holder = tally.holder(order);
    const freeInMs = tally.isHeldBy(holder) ? undefined : splitPauseOf(request.requestId);
    await this.#giveUp(hold, patienceMs, gate);
    if (!isNo) throw error;
    return { taken: false, holder, freeInMs };
  }

  /** From here on it may be believed in. */
  async #declare(hold: Hold, patienceMs: number): Promise<Taken> {
    const { requestId, fencing } = hold.request;
    const fencingToken = fencing ? await this.#drawToken(hold, patienceMs) : undefined;
    if (hold.isOver) throw new Error("it was given back before it was there");
    hold.isDeclared = true;
    this.#holds.set(requestId, hold);
    return {
      taken: true,
      ...(hold.witnesses.size < this.#votes.majority && { mayComeAgain: true }),
      ...(fencingToken !== undefined && { fencingToken }),
    };
  }

  // ---- one master's word on a hold --------------------------------------------------------------------

  /** Resolves when its word is noted: to what it said, or to nothing where it failed. */
  #askFor(hold: Hold, master: Master, ask: Ask, patienceMs: number): Promise<TakeReply | undefined> {
    const noted = this.#askAndNote(hold, master, ask, patienceMs).catch((error: unknown) => {
      hold.tally.silent(master, error);
      return undefined;
    });
    hold.asked.set(master, noted);
    return noted;
  }

  async #askAndNote(hold: Hold, master: Master, ask: Ask, patienceMs: number): Promise<TakeReply> {
    const { request, tally, witnesses, at } = hold;
    const reply = await master.ask(ask);
    const isOwn = reply.taken || (reply.holder === request.requestId && !this.#isSecond(hold));
    if (!isOwn) {
      tally.no(master, reply.holder);
      return reply;
    }
    at.add(master);
    if (hold.isOver) {
      // What was sent to end it may have come before.
      if ((await hold.ends.get(master)) !== true) void this.#dropAt(master, hold, patienceMs);
      return reply;
    }
    if (!reply.taken) {
      // It was carried out twice, and is worth nothing until it is renewed.
      const [renewed = NO_ANSWER] = await master.ask((store) => store.renew([plain(request)], patienceMs));
      if (renewed instanceof Error) throw renewed;
      if (!renewed.renewed) at.delete(master);
    } else if (reply.mayComeAgain !== true && this.#isSure(hold)) witnesses.add(master);
    const fault = await master.fault();
    if (fault !== undefined) tally.silent(master, fault);
    else if (at.has(master)) tally.yes(master);
    return reply;
  }

  /** Whether the same command was carried out before, and has the key. */
  #isSecond(hold: Hold): boolean {
    const first = this.#holds.get(hold.request.requestId);
    return first !== undefined && first !== hold;
  }

  // ---- giving up --------------------------------------------------------------------------------------

  /** Nobody believes in it from here on, for good. */
  #end(hold: Hold): void {
    hold.isOver = true;
    const { requestId } = hold.request;
    if (this.#holds.get(requestId) === hold) this.#holds.delete(requestId);
  }

  /**
   * It is not ours: what masters have for it, or will have, is given back; the gate last, so that the next one who passes
   * it finds the others free. Nobody was told that it is taken; or it is being told that it is lost.
   */
  async #giveUp(hold: Hold, patienceMs: number, gate?: Master): Promise<void> {
    this.#end(hold);
    const drops: Promise<unknown>[] = [];
    for (const master of hold.asked.keys()) {
      if (master === gate || hold.tally.of(master)?.says === "no") continue;
      const sent = this.#dropAt(master, hold, patienceMs);
      if (hold.at.has(master)) drops.push(sent);
    }
    await this.#heard(drops, () => false, patienceMs);
    if (gate !== undefined) void this.#dropAt(gate, hold, patienceMs);
  }

  async #dropAt(master: Master, hold: Hold, withinMs: number): Promise<void> {
    const { key, requestId } = hold.request;
    await this.#send({ key, requestId }, hold, master, withinMs).catch(() => {});
  }

  #send(request: DropRequest, hold: Hold | undefined, master: Master, withinMs: number): Promise<DropReply> {
    const sent = master.drop(request, hold?.lockTimeMs ?? this.#longestLockTimeMs, withinMs);
    const ended = sent.then(
      ({ dropped }) => dropped,
      () => false,
    );
    hold?.ends.set(master, ended);
    return sent;
  }

  // ---- fencing tokens ---------------------------------------------------------------------------------

  /**
   * The largest that a majority draws, once it has the hold, is the token; and before anybody sees it, a majority will
   * draw none but larger ones.
   *
   * @throws where there is no majority for either
   */
  async #drawToken({ request }: Hold, patienceMs: number): Promise<number> {
    let token = 0;
    await this.#poll(patienceMs, async ({ store }) => {
      const [reply = NO_ANSWER] = await store.renew([{ ...plain(request), fencing: true }], patienceMs);
      if (reply instanceof Error) throw reply;
      if (reply.renewed) token = Math.max(token, reply.fencingToken ?? 0);
      return reply.renewed;
    });
    const drawn = token;
    await this.#poll(patienceMs, async (member) => {
      await member.raiseFence(request.key, drawn, request.lockTimeMs, patienceMs);
      return true;
    });
    return drawn;
  }

  /** @throws where no majority says yes */
  async #poll(patienceMs: number, ask: (member: Member) => Promise<boolean>): Promise<void> {
    const tally = new Tally(this.#votes);
    const asked = this.#askAll(patienceMs, ask, (master, isYes) => {
      if (isYes instanceof Error) tally.silent(master, isYes);
      else if (isYes) tally.yes(master);
      else tally.no(master, undefined);
    });
    await this.#heard(asked, () => tally.isYes || tally.isNo, patienceMs);
    if (!tally.isYes) throw tally.error();
  }

  /** Asks all who may be asked, and notes what counts of what they say. */
  #askAll<Reply>(
    patienceMs: number,
    ask: (member: Member, master: Master) => Promise<Reply>,
    note: (master: Master, reply: Reply | Error) => void,
  ): Promise<void>[] {
    return this.#masters.map(async (master) => {
      if (!master.mayBeAsked(patienceMs)) return note(master, NO_ANSWER);
      try {
        const reply = await master.ask(() => ask(master.member, master));
        note(master, (await master.fault()) ?? reply);
      } catch (error) {
        note(master, error instanceof Error ? error : new Error("it failed", { cause: error }));
      }
    });
  }

  // ---- renewing ---------------------------------------------------------------------------------------

  async renew(requests: readonly RenewRequest[], withinMs: number): Promise<readonly RenewReply[]> {
    // What was not declared is never renewed: its give-back may be on its way to the masters.
    const isHeld = ({ requestId }: RenewRequest): boolean => this.#holds.get(requestId)?.isDeclared === true;
    const allowed = requests.filter((request) => this.#refusal(request) === undefined);
    const held = allowed.filter(isHeld);
    const others = allowed.filter((request) => !held.includes(request));
    const keys = others.map(({ key }) => key);
    const [renewed, values] = await Promise.all([
      held.length > 0 ? this.#renewHeld(held, patienceOf(withinMs)) : [],
      this.look(keys, withinMs),
    ]);
    const replies = new Map<RenewRequest, RenewReply>();
    held.forEach((request, index) => replies.set(request, renewed[index] ?? NO_ANSWER));
    others.forEach((request, index) => {
      const value = values[index];
      const holder = value === request.requestId ? undefined : value;
      replies.set(request, holder instanceof Error ? holder : { renewed: false, holder });
    });
    return requests.map((request) => replies.get(request) ?? this.#refusal(request) ?? NO_ANSWER);
  }

  async #renewHeld(requests: readonly RenewRequest[], patienceMs: number): Promise<readonly RenewReply[]> {
    const sentAt = this.#clock.now();
    const tallies = requests.map(() => new Tally(this.#votes));
    const lacking = requests.map(() => new Set<Master>());
    const asked = this.#askAll(
      patienceMs,
      async ({ store }, master) => {
        const replies = await store.renew(requests.map(plain), patienceMs);
        lacking.forEach((masters, index) => {
          const reply = replies[index];
          const isFree = reply !== undefined && "holder" in reply && reply.holder === undefined;
          if (isFree) masters.add(master); // Also where its word does not count yet.
        });
        return replies;
      },
      (master, replies) =>
        tallies.forEach((tally, index) => {
          const reply = replies instanceof Error ? replies : (replies[index] ?? NO_ANSWER);
          if (reply instanceof Error) tally.silent(master, reply);
          else if (reply.renewed) tally.yes(master);
          else tally.no(master, reply.holder);
        }),
    );
    const isDecided = (): boolean =>
      tallies.every((tally, index) => tally.isYes || this.#isSurelyNo(tally, requests[index]?.key ?? ""));
    await this.#heard(asked, isDecided, patienceMs);
    const none = new Tally(this.#votes);
    return await Promise.all(
      requests.map((request, index) => {
        const [tally = none, masters = []] = [tallies[index], lacking[index]];
        return this.#renewed(request, tally, masters, sentAt, patienceMs).catch((error: Error) => error);
      }),
    );
  }

  /** Where it is, the gate knows best what the key holds instead. */
  #isSurelyNo(tally: Tally, key: string): boolean {
    const [gate] = inOrder(key, this.#masters);
    return tally.isNo && gate !== undefined && tally.of(gate) !== undefined;
  }

  async #renewed(
    request: RenewRequest,
    tally: Tally,
    lacking: Iterable<Master>,
    sentAt: number,
    patienceMs: number,
  ): Promise<RenewReply> {
    const order = inOrder(request.key, this.#masters);
    const hold = this.#holds.get(request.requestId);
    if (hold === undefined) return { renewed: false, holder: undefined }; // It was given back meanwhile.
    hold.lockTimeMs = Math.max(hold.lockTimeMs, request.lockTimeMs);
    if (tally.isNo) {
      await this.#giveUp(hold, patienceMs, order[0]);
      return { renewed: false, holder: tally.holder(order) };
    }
    const wasSure = this.#isSure(hold);
    // What is sure again from now on is known only of those that have said so now.
    if (!wasSure) hold.witnesses.clear();
    if (tally.isYes) hold.prove(sentAt, request.lockTimeMs);
    if (wasSure || tally.isYes) {
      for (const master of order) if (tally.of(master)?.says === "yes") hold.witnesses.add(master);
    }
    // Never what may have been lost: it would come back to life.
    if (wasSure) this.#strengthen(hold, lacking, request, patienceMs);
    if (!tally.isYes) throw tally.error();
    if (!request.fencing) return RENEWED;
    return { renewed: true, fencingToken: await this.#drawToken(hold, patienceMs) };
  }

  #isSure(hold: Hold): boolean {
    const now = this.#clock.now();
    return hold.isSure(now, this.#suspension.trustedSince(now));
  }

  /** A master that does not have what is surely ours, such as one that was dead when it was taken, takes it now. */
  #strengthen(hold: Hold, lacking: Iterable<Master>, request: RenewRequest, patienceMs: number): void {
    for (const master of lacking) {
      void this.#askFor(hold, master, (store) => store.take(plain(request), patienceMs), patienceMs);
    }
  }

  // ---- the end of a hold ------------------------------------------------------------------------------

  async drop(request: DropRequest, withinMs: number): Promise<DropReply> {
    const patienceMs = patienceOf(withinMs);
    const ending = this.#beginEnd(request, patienceMs);
    const { gate, others, tally } = ending;
    // The next one who passes the gate finds a majority free.
    const last = this.#heard(
      others,
      () => tally.count("yes") + tally.count("no") >= this.#votes.majority - 1,
      patienceMs,
    ).then(() => this.#endAt(gate, ending, patienceMs));
    return await this.#ended(ending, [...others, last], 2 * patienceMs);
  }

  /** All but the gate are told that it is over. */
  #beginEnd(request: DropRequest, patienceMs: number): Ending {
    const hold = this.#holds.get(request.requestId);
    if (hold !== undefined) this.#end(hold);
    const order = inOrder(request.key, this.#masters);
    const gate = this.#gates(request.key, patienceMs)[0] ?? order[0];
    if (gate === undefined) throw new Error("a quorum of no masters");
    const ending: Ending = { request, hold, order, gate, tally: new Tally(this.#votes), others: [] };
    for (const master of order) {
      if (master !== gate) ending.others.push(this.#endAt(master, ending, patienceMs));
    }
    return ending;
  }

  async #endAt(master: Master, ending: Ending, patienceMs: number): Promise<void> {
    const { request, hold, tally } = ending;
    try {
      const reply = await this.#send(request, hold, master, patienceMs);
      await this.#noteEnd(master, ending, reply);
    } catch (error) {
      tally.silent(master, error);
    }
  }

  async #noteEnd(master: Master, { hold, tally }: Ending, reply: DropReply): Promise<void> {
    const isProven = hold === undefined || hold.witnesses.has(master);
    const fault = (await master.fault()) ?? (reply.dropped && !isProven ? UNPROVEN : undefined);
    if (fault !== undefined) tally.silent(master, fault);
    else if (reply.dropped) tally.yes(master);
    else tally.no(master, reply.holder);
  }

  async #ended(
    { request, order, tally }: Ending,
    asked: readonly Promise<void>[],
    withinMs: number,
  ): Promise<DropReply> {
    await this.#heard(asked, () => tally.isYes || this.#isSurelyNo(tally, request.key), withinMs);
    if (tally.isYes) return DROPPED;
    if (!tally.isNo) throw tally.error();
    return { dropped: false, holder: tally.holder(order) };
  }

  async next(held: DropRequest, request: PlaceRequest, withinMs: number): Promise<NextReply | NotDropped> {
    if (this.#refusal(request) !== undefined) {
      // Who asks for too much is told when it asks by itself: who holds it has nothing to do with that.
      const reply = await this.drop(held, withinMs);
      return reply.dropped ? { dropped: true, next: undefined } : reply;
    }
    const patienceMs = patienceOf(withinMs);
    const ending = this.#beginEnd(held, patienceMs);
    const { gate, others, tally } = ending;
    const isPassable = (): boolean => tally.count("yes") >= this.#votes.majority - 1;
    await this.#heard(others, isPassable, patienceMs);
    if (!isPassable()) {
      const last = this.#endAt(gate, ending, patienceMs);
      const reply = await this.#ended(ending, [...others, last], patienceMs);
      return reply.dropped ? { dropped: true, next: undefined } : reply;
    }
    return await this.#passOn(ending, request, patienceMs);
  }

  /** The gate alone passes the key on: to the request, which then asks the others, or to who waits there. */
  async #passOn(ending: Ending, request: PlaceRequest, patienceMs: number): Promise<NextReply | NotDropped> {
    const { gate, others } = ending;
    const successor = this.#newHold(request);
    let isPlaced = false;
    const asked = this.#askFor(
      successor,
      gate,
      async (store) => {
        const { place } = request;
        const reply = await store.next(ending.request, { ...plain(request), place }, patienceMs);
        const isDone = reply.dropped || reply.holder === request.requestId;
        await this.#noteEnd(gate, ending, isDone ? DROPPED : reply);
        isPlaced = reply.dropped && reply.next === "placed";
        if (reply.dropped && typeof reply.next === "object") return reply.next;
        return { taken: false, holder: reply.dropped ? undefined : reply.holder, freeInMs: undefined };
      },
      patienceMs,
    );
    void asked.then(() => {
      if (successor.tally.of(gate)?.says !== "silent" || successor.at.has(gate)) return;
      void this.#endAt(gate, ending, patienceMs); // Whether it was carried out is unknown.
    });
    await this.#within(patienceMs, asked);
    if (isPlaced) this.#stands(request, gate, patienceMs);
    const reply = await this.#ended(ending, [...others, asked.then(() => {})], patienceMs).catch(
      (error: Error) => error,
    );
    if (reply instanceof Error || !reply.dropped || !successor.at.has(gate)) {
      await this.#giveUp(successor, patienceMs, gate);
      if (reply instanceof Error) throw reply;
      return reply.dropped ? { dropped: true, next: isPlaced ? "placed" : undefined } : reply;
    }
    const next = await this.#askOthers(successor, gate, patienceMs).catch(() => undefined);
    return { dropped: true, next: next?.taken === true ? next : undefined };
  }

  // ---- what keys hold ---------------------------------------------------------------------------------

  async look(keys: readonly string[], withinMs: number): Promise<readonly (string | Error | undefined)[]> {
    if (keys.length === 0) return [];
    const patienceMs = patienceOf(withinMs);
    const said = keys.map(() => new Map<Master, string | Error | undefined>());
    const asked = this.#askAll(
      patienceMs,
      ({ store }) => store.look(keys, patienceMs),
      (master, values) =>
        said.forEach((words, index) => words.set(master, values instanceof Error ? values : values[index])),
    );
    const isDecided = (): boolean =>
      said.every((words, index) => this.#value(keys[index] ?? "", words) !== OPEN);
    await this.#heard(asked, isDecided, patienceMs);
    return keys.map((key, index) => {
      const words = said[index] ?? new Map<Master, string | Error | undefined>();
      for (const master of this.#masters) if (!words.has(master)) words.set(master, NO_ANSWER);
      const value = this.#value(key, words);
      if (value !== OPEN) return value;
      const tally = new Tally(this.#votes);
      for (const [master, word] of words) if (word instanceof Error) tally.silent(master, word);
      return tally.error();
    });
  }

  /** What a majority has; where there is none, what the gate keeps for one who waits. */
  #value(
    key: string,
    words: ReadonlyMap<Master, string | Error | undefined>,
  ): string | undefined | typeof OPEN {
    const counts = new Map<string, number>();
    let unheard = this.#votes.all;
    for (const [master, value] of words) {
      if (value instanceof Error) continue;
      unheard -= 1;
      if (value === undefined) continue;
      const hold = this.#holds.get(value);
      if (hold === undefined || hold.witnesses.has(master)) counts.set(value, (counts.get(value) ?? 0) + 1);
      else unheard += 1; // It proves nothing, and disproves nothing.
    }
    const { majority } = this.#votes;
    for (const [value, count] of counts) if (count >= majority) return value;
    if (Math.max(0, ...counts.values()) + unheard >= majority) return OPEN;
    const [gate] = inOrder(key, this.#masters);
    if (gate === undefined || !words.has(gate)) return OPEN;
    const first = inOrder(key, this.#masters)
      .map((master) => words.get(master))
      .find((value) => !(value instanceof Error));
    return typeof first === "string" && isReserved(first) ? first : undefined;
  }

  // ---- who comes next ---------------------------------------------------------------------------------

  async place(request: PlaceRequest, withinMs: number): Promise<TakeReply> {
    const patienceMs = patienceOf(withinMs);
    const { place } = request;
    const { gate, reply } = await this.#elect(request, patienceMs, (store) =>
      store.place({ ...plain(request), place }, patienceMs),
    );
    if (reply.taken) this.#standing.delete(place);
    else this.#stands(request, gate, patienceMs);
    return reply;
  }

  /** From now on it stands in line at that master, and at no other. */
  #stands({ key, place }: PlaceRequest, gate: Master, patienceMs: number): void {
    const before = this.#standing.get(place);
    if (before !== undefined && before !== gate)
      void this.#leaveAt(before, key, place, patienceMs).catch(() => {});
    this.#standing.set(place, gate);
  }

  async leave(key: string, place: string, withinMs: number): Promise<void> {
    const patienceMs = patienceOf(withinMs);
    const gate = this.#standing.get(place) ?? this.#gates(key, patienceMs)[0];
    this.#standing.delete(place);
    if (gate !== undefined) await this.#leaveAt(gate, key, place, withinMs);
  }

  #leaveAt(master: Master, key: string, place: string, withinMs: number): Promise<void> {
    return master.ask((store) => store.leave(key, place, withinMs));
  }

  listen(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    const deafen = this.#masters.map(({ name, member }) =>
      member.store.listen({
        onHint: (place) => listener.onHint(place),
        onReconnect: () => listener.onReconnect(),
        onWarning: (message) => listener.onWarning(`${name}: ${message}`),
      }),
    );
    return () => {
      this.#listeners.delete(listener);
      for (const end of deafen) end();
    };
  }

  #warn(message: string): void {
    if (this.#warnings.has(message)) return;
    this.#warnings.add(message);
    for (const listener of this.#listeners) listener.onWarning(message);
  }

  /** What is on its way back to the masters gets there, if they answer. */
  async close(): Promise<void> {
    const drops = this.#masters.flatMap((master) =>
      master.answers(LEAST_PATIENCE_MS) ? [...master.drops] : [],
    );
    await this.#heard(drops, () => false, LAST_PATIENCE_MS);
    this.#deafen();
    await Promise.all(this.#masters.map(({ member }) => member.close()));
  }

  // ---- time -------------------------------------------------------------------------------------------

  /** Resolves when it is decided, or all are heard, or the time is over. */
  #heard(asked: Iterable<Promise<unknown>>, isDecided: () => boolean, withinMs: number): Promise<void> {
    const waitedFor = [...asked];
    let unheard = waitedFor.length;
    if (unheard === 0 || isDecided()) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        resolve();
      };
      const cancel = this.#clock.afterInBackground(withinMs, end);
      for (const one of waitedFor) {
        void one.then(() => {
          unheard -= 1;
          if (unheard === 0 || isDecided()) end();
        });
      }
    });
  }

  /** What it resolves to, or nothing where that is not in time. */
  async #within<Reply>(withinMs: number, asked: Promise<Reply>): Promise<Reply | undefined> {
    let reply: Reply | undefined;
    await this.#heard(
      [
        asked.then((value) => {
          reply = value;
        }),
      ],
      () => false,
      withinMs,
    );
    return reply;
  }
}

/** A hold that is being given back. */
interface Ending {
  readonly request: DropRequest;
  readonly hold: Hold | undefined;
  readonly order: readonly Master[];
  readonly gate: Master;
  readonly tally: Tally;
  /** All but the gate: each resolves when what it said is noted. */
  readonly others: Promise<void>[];
}

/** What is not known yet. */
const OPEN = Symbol("open");

function patienceOf(withinMs: number): number {
  return Math.max(withinMs / STEPS, LEAST_PATIENCE_MS);
}

/** Another one for each, so that not all who tried at once try at once again. */
function splitPauseOf(requestId: string): number {
  return Number.parseInt(requestId.slice(-4), 16) % LONGEST_SPLIT_PAUSE_MS;
}

/** To a master, without a fencing token: those are drawn once there is a majority. */
function plain({ key, requestId, lockTimeMs }: TakeRequest): TakeRequest {
  return { key, requestId, lockTimeMs, fencing: false };
}
