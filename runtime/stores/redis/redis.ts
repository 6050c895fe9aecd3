// Locks in Redis. A key holds the requestId of its holder, or a reservation for who is next (see value.ts), and its time
// to live is the lock time. What each command does stands at the head of its script.

import { systemClock } from "../../clock";
import { reasonOf } from "../../errors";
import {
  MOST_AT_ONCE,
  type DropReply,
  type DropRequest,
  type NextReply,
  type NotDropped,
  type NotTaken,
  type PlaceRequest,
  type RenewReply,
  type RenewRequest,
  type Store,
  type StoreListener,
  type Taken,
  type TakeReply,
  type TakeRequest,
} from "../port";
import { shown } from "../../shown";
import { assertClient, isCluster, type RedisClient } from "./client";
import { Database } from "./database";
import { isBeforeRedis7, isDenied, isUnknownScript, isWrongType, wrapped } from "./errors";
import { evictionWarning } from "./eviction";
import { Inbox } from "./inbox";
import { assertPrefix, isInSlot, nameBeside } from "./keys";
import { OwnClient } from "./own-client";
import { DROP, DROP_ALONE, DROP_MANY } from "./scripts/drop";
import { LEAVE } from "./scripts/leave";
import { LOOK } from "./scripts/look";
import { NEXT } from "./scripts/next";
import { PLACE } from "./scripts/place";
import { RENEW, RENEW_WITH_TOKEN } from "./scripts/renew";
import type { Script } from "./scripts/script";
import { TAKE } from "./scripts/take";
import { TAKE_MANY } from "./scripts/take-many";

/**
 * Locks in Redis: the key holds the `requestId`, its time to live is the lock time.
 *
 * Many keys go in one script, except to a cluster. A second connection, for hints, is opened when somebody first waits.
 * `client` stays the caller's: `close()` does not touch it.
 *
 * @throws {LockOptionError} when it is no client of ioredis, or when its keyPrefix contains `lockweave:`
 */
export function redisStore(client: RedisClient): Store {
  assertClient(client);
  const database = new Database(client);
  return new RedisStore(
    client,
    (_withinMs, ...command) =>
      database.fault === undefined ? client.call(...command) : Promise.reject(database.fault),
    () => database.close(),
  );
}

/**
 * The same over a connection of the store's own.
 *
 * @throws {LockOptionError} when `url` is no `redis://` or `rediss://` address
 * @throws {LockMisconfiguredError} when ioredis is not installed, or too old
 */
export function redisStoreAt(url: string): Store {
  const own = new OwnClient(url);
  const store = new RedisStore(
    own.client,
    (...command) => own.call(...command),
    () => own.close(),
  );
  own.onTrouble((error) => store.warn(`there is no connection to Redis: ${reasonOf(error)}`));
  return store;
}

type Send = (withinMs: number, command: string, ...args: (string | number)[]) => Promise<unknown>;

/** A number in a script's reply: as text, where the client was told so by its `stringNumbers`. */
type Figure = number | string;

/** What a script found instead of what it was to change: in an array, nothing where the key is free. */
type Found = readonly [string | null | Error];

class RedisStore implements Store {
  readonly #client: RedisClient;
  readonly #send: Send;
  readonly #closeClient: () => void;
  readonly #prefix: string;
  readonly #isCluster: boolean;
  /** In a cluster PUBLISH counts who listens on one node only. */
  readonly #counts: "0" | "1";
  readonly #inbox: Inbox;
  readonly #listeners = new Set<StoreListener>();
  readonly #warnings: string[] = [];
  readonly takeMany: Store["takeMany"];
  readonly dropMany: Store["dropMany"];
  #setCanGet = true;
  #breaks = 0;
  #hasBeenReady = false;
  #isClosed = false;

  constructor(client: RedisClient, send: Send, closeClient: () => void) {
    this.#client = client;
    this.#send = send;
    this.#closeClient = closeClient;
    this.#prefix = client.options.keyPrefix ?? "";
    assertPrefix(this.#prefix);
    this.#isCluster = isCluster(client);
    this.#counts = this.#isCluster ? "0" : "1";
    this.#inbox = new Inbox(client, {
      hinted: (place) => {
        for (const listener of this.#listeners) listener.onHint(place);
      },
      denied: () => this.warn(CHANNELS_DENIED),
    });
    if (!this.#isCluster) {
      this.takeMany = (requests, withinMs) => this.#takeMany(requests, withinMs);
      this.dropMany = (requests, withinMs) => this.#dropMany(requests, withinMs);
    }
    for (const [event, hear] of this.#events) client.on(event, hear);
    if (client.status === "ready") this.#connected();
  }

  // ---- who holds --------------------------------------------------------------------------------------

  take(request: TakeRequest, withinMs: number): Promise<TakeReply> {
    const { key, requestId, lockTimeMs, fencing } = request;
    if (fencing || !this.#setCanGet) return this.#takeByScript(request, withinMs);
    const breaksBefore = this.#breaks;
    // One command that changes nothing when it is carried out again, and tells what it found.
    return this.#send(withinMs, "set", key, requestId, "PX", lockTimeMs, "NX", "GET").then(
      (holder) => {
        if (holder === "QUEUED") throw unexpected(holder); // The transaction's end may still carry it out.
        return this.#takeReply(holder as string | null, breaksBefore);
      },
      (error: unknown) => {
        if (!isBeforeRedis7(error)) throw wrapped(error);
        this.#setCanGet = false;
        return this.#takeByScript(request, withinMs);
      },
    );
  }

  #takeByScript({ key, requestId, lockTimeMs, fencing }: TakeRequest, withinMs: number): Promise<TakeReply> {
    const keys = fencing ? [key, this.#fence(key)] : [key];
    const breaksBefore = this.#breaks;
    return this.#run(TAKE, keys, [requestId, lockTimeMs], withinMs, (reply) => {
      const [isTaken, detail] = listOf(reply) as [Figure, (string | null)?];
      if (Number(isTaken) === 1) return this.#taken(breaksBefore, fencing, detail);
      return this.#takeReply(detail ?? "", breaksBefore);
    });
  }

  async #takeMany(
    requests: readonly TakeRequest[],
    withinMs: number,
  ): Promise<readonly (TakeReply | Error)[]> {
    const alone = (request: TakeRequest): Promise<TakeReply> => this.#takeByScript(request, withinMs);
    if (!this.#setCanGet) return await eachAlone(requests, alone);
    const keys = requests.map(({ key }) => key);
    const args = [idsOf(requests), ...lockTimesOf(requests)];
    const breaksBefore = this.#breaks;
    const replies = await this.#runMany(TAKE_MANY, keys, args, withinMs);
    if (replies === "denied") return await eachAlone(requests, (one) => this.take(one, withinMs));
    if (replies.some(isBeforeRedis7)) {
      this.#setCanGet = false;
      return await eachAlone(requests, alone);
    }
    return (replies as (string | null | Error)[]).map((reply) =>
      reply instanceof Error ? wrapped(reply) : this.#takeReply(reply, breaksBefore),
    );
  }

  /** @param found what the key held before the command */
  #takeReply(found: string | null, breaksBefore: number): TakeReply {
    if (found === null) return this.#taken(breaksBefore, false, undefined);
    return { taken: false, holder: found, freeInMs: undefined };
  }

  #taken(breaksBefore: number, fencing: boolean, token: string | null | undefined): Taken {
    const mayComeAgain = this.#breaks !== breaksBefore;
    if (!fencing && !mayComeAgain) return TAKEN;
    return {
      taken: true,
      ...(mayComeAgain && { mayComeAgain }),
      ...(fencing && { fencingToken: Number(token) }),
    };
  }

  async renew(requests: readonly RenewRequest[], withinMs: number): Promise<readonly RenewReply[]> {
    const plain = requests.filter(({ fencing }) => !fencing);
    const most = this.#isCluster ? 1 : MOST_AT_ONCE;
    const chunks = Array.from({ length: Math.ceil(plain.length / most) }, (_, index) =>
      plain.slice(index * most, (index + 1) * most),
    );
    const replies = new Map<RenewRequest, RenewReply>();
    // What fails for some says nothing about the others, which may be on another node.
    await Promise.all([
      ...chunks.map(async (chunk) => {
        const told = await this.#renewMany(chunk, withinMs).catch((error: Error) => chunk.map(() => error));
        chunk.forEach((request, index) => replies.set(request, told[index] ?? TOO_FEW));
      }),
      ...requests
        .filter(({ fencing }) => fencing)
        .map(async (request) => {
          const told = await this.#renewWithToken(request, withinMs).catch((error: Error) => error);
          replies.set(request, told);
        }),
    ]);
    return requests.map((request) => replies.get(request) ?? TOO_FEW);
  }

  async #renewMany(requests: readonly RenewRequest[], withinMs: number): Promise<readonly RenewReply[]> {
    const keys = requests.map(({ key }) => key);
    const args = [idsOf(requests), ...lockTimesOf(requests)];
    const replies = await this.#runMany(RENEW, keys, args, withinMs);
    if (replies !== "denied") return replies.map(renewReply);
    const alone = requests.map(async (request) => (await this.#renewMany([request], withinMs))[0] ?? TOO_FEW);
    return (await Promise.allSettled(alone)).map(settledOrError);
  }

  #renewWithToken({ key, requestId, lockTimeMs }: RenewRequest, withinMs: number): Promise<RenewReply> {
    const keys = [key, this.#fence(key)];
    return this.#run(RENEW_WITH_TOKEN, keys, [requestId, lockTimeMs], withinMs, (reply) => {
      const [isRenewed, detail = null] = listOf(reply) as [Figure, (string | null | Error)?];
      if (Number(isRenewed) === 1) return { renewed: true, fencingToken: Number(detail) };
      return renewReply([detail]);
    });
  }

  drop(request: DropRequest, withinMs: number): Promise<DropReply> {
    const { key, requestId } = request;
    const breaksBefore = this.#breaks;
    const read = (reply: unknown): DropReply => {
      const told = this.#dropReply(reply, breaksBefore);
      if (told instanceof Error) throw told;
      return told;
    };
    if (!this.#canQueue(key)) return this.#run(DROP_ALONE, [key], [requestId], withinMs, read);
    return this.#run(DROP, [key, this.#queue(key)], [requestId, this.#counts], withinMs, read);
  }

  async #dropMany(
    requests: readonly DropRequest[],
    withinMs: number,
  ): Promise<readonly (DropReply | Error)[]> {
    const breaksBefore = this.#breaks;
    const keys = requests.map(({ key }) => key);
    const queues = keys.map((key) => this.#queue(key));
    const args = [idsOf(requests), this.#counts];
    const replies = await this.#runMany(DROP_MANY, [...keys, ...queues], args, withinMs);
    if (replies === "denied") return await eachAlone(requests, (one) => this.drop(one, withinMs));
    return replies.map((reply) => this.#dropReply(reply, breaksBefore));
  }

  #dropReply(reply: unknown, breaksBefore: number): DropReply | Error {
    if (reply instanceof Error) return wrapped(reply);
    if (!Array.isArray(reply)) {
      const outcome = Number(reply);
      if (outcome === 2) this.warn(CHANNELS_DENIED);
      return outcome === 1 || outcome === 2 ? DROPPED : unexpected(reply);
    }
    return this.#notDropped((reply as unknown as Found)[0], breaksBefore);
  }

  /** A client may send a command again, unasked, when the connection broke under it: the first may have dropped. */
  #notDropped(found: Found[0], breaksBefore: number): NotDropped | Error {
    if (this.#breaks !== breaksBefore) return doubtful();
    const holder = holderOf(found);
    return holder instanceof Error ? holder : { dropped: false, holder };
  }

  async look(keys: readonly string[], withinMs: number): Promise<readonly (string | Error | undefined)[]> {
    const most = this.#isCluster ? 1 : MOST_AT_ONCE;
    const chunks = Array.from({ length: Math.ceil(keys.length / most) }, (_, index) =>
      keys.slice(index * most, (index + 1) * most),
    );
    const replies = await Promise.all(chunks.map((chunk) => this.#lookAt(chunk, withinMs)));
    return replies.flat();
  }

  async #lookAt(keys: readonly string[], withinMs: number): Promise<readonly (string | Error | undefined)[]> {
    try {
      const replies = await this.#runMany(LOOK, keys, [], withinMs);
      if (replies !== "denied") return (replies as Found[0][]).map(holderOf);
    } catch (error) {
      return keys.map(() => wrapped(error));
    }
    return (await Promise.all(keys.map((key) => this.#lookAt([key], withinMs)))).flat();
  }

  // ---- who comes next ---------------------------------------------------------------------------------

  place(request: PlaceRequest, withinMs: number): Promise<TakeReply> {
    const { key, place, requestId, lockTimeMs, fencing } = request;
    if (!this.#canQueue(key)) return this.#lookAgain(request, withinMs);
    this.#inbox.open();
    const keys = this.#queueKeys(key, fencing);
    const args = [place, this.#inbox.address, requestId, lockTimeMs, this.#counts];
    const breaksBefore = this.#breaks;
    return this.#run(PLACE, keys, args, withinMs, (reply) => {
      const [isTaken, detail, pttl, isChannelDenied] = listOf(reply) as [Figure, string?, Figure?, Figure?];
      if (Number(isTaken) === 1) return this.#taken(breaksBefore, fencing, detail);
      if (Number(isChannelDenied) === 1) this.warn(CHANNELS_DENIED);
      return notTaken(detail, Number(pttl));
    });
  }

  /** Where no queue can be. */
  async #lookAgain(request: PlaceRequest, withinMs: number): Promise<TakeReply> {
    const startedAt = systemClock.now();
    const reply = await this.take(request, withinMs);
    if (reply.taken) return reply;
    const leftMs = withinMs - (systemClock.now() - startedAt);
    return notTaken(reply.holder, Number(await this.#command(leftMs, "pttl", request.key)));
  }

  async leave(key: string, place: string, withinMs: number): Promise<void> {
    if (!this.#canQueue(key)) return;
    const args = [place, this.#inbox.address, this.#counts];
    await this.#run(LEAVE, this.#queueKeys(key, false), args, withinMs, (reply) => {
      if (Number(reply) === 2) this.warn(CHANNELS_DENIED);
    });
  }

  async next(held: DropRequest, request: PlaceRequest, withinMs: number): Promise<NextReply | NotDropped> {
    const { key, place, requestId, lockTimeMs, fencing } = request;
    if (!this.#canQueue(key)) {
      const reply = await this.drop(held, withinMs);
      return reply.dropped ? { dropped: true, next: undefined } : reply;
    }
    this.#inbox.open();
    const breaksBefore = this.#breaks;
    const keys = this.#queueKeys(key, fencing);
    const args = [held.requestId, place, this.#inbox.address, requestId, lockTimeMs, this.#counts];
    return await this.#run(NEXT, keys, args, withinMs, (reply) => {
      const [outcome, detail = null, isChannelDenied] = listOf(reply) as [Figure, Found[0]?, Figure?];
      if (Number(isChannelDenied) === 1) this.warn(CHANNELS_DENIED);
      switch (Number(outcome)) {
        case 1:
          return { dropped: true, next: this.#taken(breaksBefore, fencing, detail as string | null) };
        case 2:
          return { dropped: true, next: "placed" };
        case 3:
          return { dropped: true, next: undefined };
        default: {
          const told = this.#notDropped(detail, breaksBefore);
          if (told instanceof Error) throw told;
          return told;
        }
      }
    });
  }

  // ---- what the store tells without having been asked -------------------------------------------------

  listen(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    // Also what was seen before it came; later, since nobody expects to be told during the call.
    const earlier = [...this.#warnings];
    queueMicrotask(() => {
      if (this.#listeners.has(listener)) earlier.forEach((message) => listener.onWarning(message));
    });
    return () => this.#listeners.delete(listener);
  }

  /** Tells those who listen, and those who will; the same words once. */
  warn(message: string): void {
    if (this.#isClosed || this.#warnings.includes(message)) return;
    this.#warnings.push(message);
    for (const listener of this.#listeners) listener.onWarning(message);
  }

  /** How a client tells that a connection broke, or is there: a `Redis`, and a `Cluster` of its nodes. */
  readonly #events: readonly (readonly [event: string, hear: () => void])[] = [
    ["close", () => void (this.#breaks += 1)],
    ["-node", () => void (this.#breaks += 1)],
    ["ready", () => this.#connected()],
    ["+node", () => this.#hasBeenReady && this.#tellOfReconnection()],
  ];

  #connected(): void {
    if (this.#hasBeenReady) this.#tellOfReconnection();
    this.#hasBeenReady = true;
    void this.#lookAtEviction();
  }

  #tellOfReconnection(): void {
    for (const listener of this.#listeners) listener.onReconnect();
  }

  async #lookAtEviction(): Promise<void> {
    try {
      const warning = evictionWarning(String(await this.#client.info?.("memory")));
      if (warning !== undefined) this.warn(warning);
    } catch {
      // Who may not ask is not told.
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const [event, hear] of this.#events) this.#client.off(event, hear);
    this.#inbox.close();
    this.#closeClient();
  }

  // ---- keys and commands: their names in small letters, as ioredis needs no others --------------------

  #queue(key: string): string {
    return nameBeside("queue", this.#prefix, key);
  }

  #fence(key: string): string {
    return nameBeside("fence", this.#prefix, key);
  }

  #queueKeys(key: string, fencing: boolean): string[] {
    return fencing ? [key, this.#queue(key), this.#fence(key)] : [key, this.#queue(key)];
  }

  /** In a cluster, all keys of a script must be in one slot. */
  #canQueue(key: string): boolean {
    return !this.#isCluster || isInSlot(this.#prefix, key);
  }

  /** A script for many keys, in which each has a reply of its own; `"denied"` where one key keeps it from all. */
  async #runMany(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    withinMs: number,
  ): Promise<readonly unknown[] | "denied"> {
    try {
      return await this.#run(script, keys, args, withinMs, (reply) => reply as unknown[]);
    } catch (error) {
      if (keys.length > 1 && error instanceof Error && isDenied(error.cause)) return "denied";
      throw error;
    }
  }

  /**
   * EVALSHA, and EVAL once where the server does not know the script (after a restart or SCRIPT FLUSH).
   *
   * @param read what the reply means
   */
  #run<Meaning>(
    { source, sha1 }: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    withinMs: number,
    read: (reply: unknown) => Meaning,
  ): Promise<Meaning> {
    const startedAt = systemClock.now();
    return this.#send(withinMs, "evalsha", sha1, keys.length, ...keys, ...args).then(
      read,
      async (error: unknown) => {
        if (!isUnknownScript(error)) throw wrapped(error);
        const leftMs = withinMs - (systemClock.now() - startedAt);
        if (leftMs <= 0)
          throw new Error("Redis did not know the script, and there was no time left to send it");
        return read(await this.#command(leftMs, "eval", source, keys.length, ...keys, ...args));
      },
    );
  }

  #command(withinMs: number, ...command: [string, ...(string | number)[]]): Promise<unknown> {
    return this.#send(withinMs, ...command).catch((error: unknown) => {
      throw wrapped(error);
    });
  }
}

const CHANNELS_DENIED =
  "the Redis user may not use the channels on which those who wait for a lock are told that it is theirs: they find it by looking again, which takes longer. Let it: ACL SETUSER <user> &lockweave:2:*";

/** Stands for what a key holds that is no text. */
const NO_TEXT = "(other data than text)";

// The replies without figures are made once.
const TAKEN: Taken = { taken: true };
const DROPPED: DropReply = { dropped: true };
const RENEWED: RenewReply = { renewed: true };
const TOO_FEW = new Error("Redis sent fewer replies than it was asked for");

function doubtful(): Error {
  return new Error("the connection broke under the release, which Redis may have carried out");
}

/** What no script of ours replies: such as "QUEUED", of a client that is in the middle of a transaction. */
function unexpected(reply: unknown): Error {
  return new Error(`Redis sent no reply to a script of ours, but ${shown(reply)}`);
}

function listOf(reply: unknown): readonly unknown[] {
  if (Array.isArray(reply)) return reply;
  throw unexpected(reply);
}

/** @param pttl -1 for a key that never expires, and for those who are not next */
function notTaken(holder: string | undefined, pttl: number): NotTaken {
  return { taken: false, holder, freeInMs: pttl === -1 ? undefined : Math.max(pttl, 0) };
}

function renewReply(reply: unknown): RenewReply {
  if (reply instanceof Error) return wrapped(reply);
  if (!Array.isArray(reply)) return Number(reply) === 1 ? RENEWED : unexpected(reply);
  const holder = holderOf((reply as unknown as Found)[0]);
  return holder instanceof Error ? holder : { renewed: false, holder };
}

/** A key that holds other data than text is somebody's, whoever that is. */
function holderOf(found: Found[0]): string | Error | undefined {
  if (found === null) return undefined;
  if (!(found instanceof Error)) return found;
  return isWrongType(found) ? NO_TEXT : wrapped(found);
}

async function eachAlone<Request, Reply>(
  requests: readonly Request[],
  ask: (request: Request) => Promise<Reply>,
): Promise<(Reply | Error)[]> {
  return (await Promise.allSettled(requests.map(ask))).map(settledOrError);
}

function settledOrError<Reply>(settled: PromiseSettledResult<Reply>): Reply | Error {
  return settled.status === "fulfilled" ? settled.value : wrapped(settled.reason);
}

function idsOf(requests: readonly { readonly requestId: string }[]): string {
  return requests.map(({ requestId }) => requestId).join("");
}

function lockTimesOf(requests: readonly { readonly lockTimeMs: number }[]): number[] {
  const times = requests.map(({ lockTimeMs }) => lockTimeMs);
  return times.every((time) => time === times[0]) ? times.slice(0, 1) : times;
}
