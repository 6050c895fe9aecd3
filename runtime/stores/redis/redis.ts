// Locks in Redis. A key holds the requestId of its holder, or a reservation for who is next (see value.ts), and its time
// to live is the lock time. What each command does stands at the head of its script.

import { systemClock } from "../../clock";
import { reasonOf } from "../../errors";
import {
  type DropReply,
  type DropRequest,
  type Inspection,
  type NextReply,
  type NotDropped,
  type NotHeld,
  type PlaceRequest,
  type AnnounceRequest,
  type Renewed,
  type RenewReply,
  type RenewRequest,
  type Store,
  type StoreListener,
  type Taken,
  type TakeReply,
  type TakeRequest,
} from "../port";
import { permitsDiffer, reservedFor, sharesIn } from "../value";
import type { RedisAddress } from "./address";
import { askBySlot, chunksOf, unlessParted, type Cluster } from "./cluster/by-slot";
import { Routes } from "./cluster/routes";
import { ShardInboxes } from "./cluster/shard-inboxes";
import { Shards } from "./cluster/shards";
import { assertClient, isCluster, type RedisClient } from "./client";
import { ConfirmingStore } from "./confirming-store";
import { Database } from "./database";
import { isBeforeRedis7, wrapped } from "./errors";
import { evictionWarning } from "./eviction";
import { Inbox, type Ears, type InboxOwner } from "./inbox";
import { assertPrefix, isInSlot, nameBeside, processName } from "./keys";
import {
  eachAlone,
  idsOf,
  lockTimesOf,
  scriptFor,
  setOf,
  settledOrError,
  single,
  type Command,
} from "./many";
import { OwnClient } from "./own-client";
import { Places } from "./places";
import {
  doubtful,
  DROPPED,
  eachDone,
  eachTaken,
  holderOf,
  listOf,
  notTaken,
  renewReply,
  TAKEN,
  TOO_FEW,
  unexpected,
  type Figure,
  type Found,
} from "./replies";
import { ScriptRunner, type Send } from "./script-runner";
import { CLOSE, DROP, DROP_ALONE, DROP_MANY } from "./scripts/drop";
import { LEAVE } from "./scripts/leave";
import { INSPECT, LOOK, TIME_LEFT } from "./scripts/look";
import { NEXT } from "./scripts/next";
import { PLACE, PLACE_MANY } from "./scripts/place";
import { RAISE_FENCE } from "./scripts/raise-fence";
import { RENEW, RENEW_WITH_TOKEN } from "./scripts/renew";
import { REVOKE } from "./scripts/revoke";
import { PLACE_TO_SHARE, SHARE } from "./scripts/share";
import { TAKE } from "./scripts/take";
import { TAKE_MANY } from "./scripts/take-many";
import { DRAW } from "./scripts/token";

/**
 * Locks in Redis: the key holds the `requestId`, its time to live is the lock time.
 *
 * Many keys go in one script; to a cluster, in one for each slot, and those for a node in one write. A second connection,
 * for hints, is opened when somebody first waits.
 * `client` stays the caller's: `close()` does not touch it.
 *
 * @throws {LockOptionError} when it is no client of ioredis, or when its keyPrefix contains `lockweave:`
 */
export function redisStore(client: RedisClient, what = "redis"): Store {
  return new ConfirmingStore(storeOver(client, what));
}

/** The same, with what a quorum of several needs besides. */
export function storeOver(client: RedisClient, what = "redis"): RedisStore {
  assertClient(client, what);
  const database = new Database(client);
  return new RedisStore(
    client,
    database.guard((_withinMs, ...command) => client.call(...command)),
    () => database.close(),
  );
}

/**
 * The same over a connection of the store's own.
 *
 * @throws {LockOptionError} when the address cannot be read
 * @throws {LockMisconfiguredError} when ioredis is not installed, or too old
 */
export function redisStoreAt(address: RedisAddress, what = "redis"): Store {
  return new ConfirmingStore(storeAt(address, what));
}

/** The same, with what a quorum of several needs besides. */
export function storeAt(address: RedisAddress, what = "redis"): RedisStore {
  const own = new OwnClient(address, what);
  const store = new RedisStore(
    own.client,
    (...command) => own.call(...command),
    () => own.close(),
  );
  own.onTrouble((error) => store.warn(`there is no connection to Redis: ${reasonOf(error)}`));
  return store;
}

export class RedisStore implements Store {
  readonly client: RedisClient;
  /** In a cluster, where one command is for each slot: the more at once, the fewer commands. */
  readonly splitsMany: boolean;
  /** Not in a cluster, where nearly each key has a slot of its own, and no two go in one script. */
  readonly placeMany: Store["placeMany"];
  readonly #send: Send;
  readonly #scripts: ScriptRunner;
  readonly #closeClient: () => void;
  readonly #prefix: string;
  /** In a cluster PUBLISH counts who listens on one node only. */
  readonly #counts: "0" | "1";
  readonly #inbox: Ears;
  readonly #places = new Places();
  /** Where the client is that of one. */
  readonly cluster: Cluster | undefined;
  readonly #listeners = new Set<StoreListener>();
  readonly #warnings: string[] = [];
  #setCanGet = true;
  #breaks = 0;
  #hasBeenReady = false;
  #isClosed = false;

  constructor(client: RedisClient, send: Send, closeClient: () => void) {
    this.client = client;
    this.#closeClient = closeClient;
    this.#prefix = client.options.keyPrefix ?? "";
    assertPrefix(this.#prefix);
    this.#counts = isCluster(client) ? "0" : "1";
    this.splitsMany = isCluster(client);
    this.placeMany = isCluster(client) ? undefined : this.#placeTogether;
    const owner: InboxOwner = {
      hinted: (place) => {
        for (const listener of this.#listeners) listener.onHint(place);
      },
      denied: () => this.warn(CHANNELS_DENIED),
    };
    if (isCluster(client)) {
      const shards = new Shards(
        client,
        () => void (this.#breaks += 1),
        () => this.#tellOfReconnection(),
      );
      const routes = new Routes(client, shards);
      this.cluster = { shards, routes };
      this.#send = (_withinMs, ...command) => routes.send(...command);
      this.#inbox = new ShardInboxes(client, shards, owner);
    } else {
      this.#send = send;
      this.#inbox = new Inbox(client, owner);
    }
    this.#scripts = new ScriptRunner(this.#send, this.cluster?.routes);
    for (const [event, hear] of this.#events) client.on(event, hear);
    if (client.status === "ready") this.#connected();
  }

  // ---- who holds --------------------------------------------------------------------------------------

  take(request: TakeRequest, withinMs: number): Promise<TakeReply> {
    const { key, requestId, lockTimeMs, fencing, permits = 1 } = request;
    if (permits > 1) return this.#share(request, permits, withinMs);
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

  #share(request: TakeRequest, permits: number, withinMs: number): Promise<TakeReply> {
    const { key, requestId, lockTimeMs } = request;
    const breaksBefore = this.#breaks;
    const shareWith = (keys: string[], ms: number): Promise<TakeReply> =>
      this.#scripts.run(SHARE, keys, [requestId, lockTimeMs, permits], ms, (reply) =>
        this.#shareReply(listOf(reply), permits, breaksBefore),
      );
    if (!this.#canQueue(key)) return shareWith([key], withinMs);
    const shared = shareWith([key, this.#queue(key)], withinMs);
    // In a slot that migrates, the queue has no say.
    return this.cluster !== undefined ? unlessParted(shared, (ms) => shareWith([key], ms), withinMs) : shared;
  }

  #shareReply(reply: readonly unknown[], permits: number, breaksBefore: number): TakeReply {
    const [isTaken, detail, left, isDenied] = reply as [Figure, (string | Figure | null)?, Figure?, Figure?];
    if (Number(isTaken) !== 1) {
      if (Number(isDenied) === 1) this.warn(CHANNELS_DENIED);
      return notTaken(String(detail), Number(left ?? -1));
    }
    if (Number(left) === 1) this.warn(CHANNELS_DENIED);
    if (detail !== null && detail !== undefined) this.warn(permitsDiffer(permits, Number(detail)));
    return this.#taken(breaksBefore, false, undefined);
  }

  #takeByScript(request: TakeRequest, withinMs: number): Promise<TakeReply> {
    const { key, requestId, lockTimeMs, fencing } = request;
    const keys = fencing ? [key, this.#fence(key)] : [key];
    const breaksBefore = this.#breaks;
    const taken = this.#scripts.run(TAKE, keys, [requestId, lockTimeMs], withinMs, (reply) => {
      const [isTaken, detail] = listOf(reply) as [Figure, (string | null)?];
      if (Number(isTaken) === 1) return this.#taken(breaksBefore, fencing, detail);
      return this.#takeReply(detail ?? "", breaksBefore);
    });
    return this.cluster !== undefined
      ? unlessParted(taken, (ms) => this.#takeThenDraw(request, ms), withinMs)
      : taken;
  }

  /** In a slot that migrates: the token is drawn after the grant, which counts once a later renewal has confirmed it. */
  async #takeThenDraw(request: TakeRequest, withinMs: number): Promise<TakeReply> {
    const startedAt = systemClock.now();
    const reply = await this.take({ ...request, fencing: false }, withinMs);
    if (!reply.taken) return reply;
    const drawn = await this.#drawAndRenew(request, startedAt, withinMs);
    if (!drawn.renewed) return { taken: false, holder: drawn.holder, freeInMs: undefined };
    return {
      ...reply,
      ...(drawn.fencingToken === undefined ? {} : { fencingToken: drawn.fencingToken }),
      taken: true,
    };
  }

  /** A property, as `dropMany`: whoever sends batches asks whether it is there, and calls it by itself. */
  readonly takeMany = async (
    requests: readonly TakeRequest[],
    withinMs: number,
  ): Promise<readonly (TakeReply | Error)[]> => {
    const cluster = this.cluster;
    if (cluster === undefined) return await this.#takeTogether(requests, withinMs);
    if (!this.#setCanGet) return await eachAlone(requests, (one) => this.take(one, withinMs));
    const breaksBefore = this.#breaks;
    return await askBySlot(cluster, requests, {
      command: (some) => single(some, setOf) ?? scriptFor(TAKE_MANY, some),
      read: (reply, some) =>
        (some.length === 1 && !Array.isArray(reply) ? [reply] : eachTaken(reply, some.length)).map((found) =>
          found instanceof Error ? wrapped(found) : this.#takeReply(found as string | null, breaksBefore),
        ),
      again: (some) => eachAlone(some, (one) => this.take(one, withinMs)),
    });
  };

  async #takeTogether(
    requests: readonly TakeRequest[],
    withinMs: number,
  ): Promise<readonly (TakeReply | Error)[]> {
    const alone = (request: TakeRequest): Promise<TakeReply> => this.#takeByScript(request, withinMs);
    if (!this.#setCanGet) return await eachAlone(requests, alone);
    const keys = requests.map(({ key }) => key);
    const args = [idsOf(requests), ...lockTimesOf(requests)];
    const breaksBefore = this.#breaks;
    const read = (reply: unknown): readonly unknown[] => eachTaken(reply, requests.length);
    const replies = await this.#scripts.runMany(TAKE_MANY, keys, args, withinMs, read);
    if (replies === "each alone") return await eachAlone(requests, (one) => this.take(one, withinMs));
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
    const replies = new Map<RenewRequest, RenewReply>();
    const note = (some: readonly RenewRequest[], told: readonly RenewReply[]): void =>
      some.forEach((request, index) => replies.set(request, told[index] ?? TOO_FEW));
    // What fails for some says nothing about the others, which may be on another node.
    await Promise.all([
      this.#renewPlain(plain, withinMs).then((told) => note(plain, told)),
      ...requests
        .filter(({ fencing }) => fencing)
        .map(async (request) => {
          const told = await this.#renewWithToken(request, withinMs).catch((error: Error) => error);
          note([request], [told]);
        }),
    ]);
    return requests.map((request) => replies.get(request) ?? TOO_FEW);
  }

  async #renewPlain(requests: readonly RenewRequest[], withinMs: number): Promise<readonly RenewReply[]> {
    if (this.cluster !== undefined) {
      return await askBySlot(this.cluster, requests, {
        command: (some) => scriptFor(RENEW, some),
        read: (reply, some) => eachDone(reply, some.length).map(renewReply),
        again: async (some) =>
          await this.#renewMany(some, withinMs).catch((error: Error) => some.map(() => error)),
      });
    }
    const chunks = chunksOf(requests, ({ key }) => key, undefined).map((chunk) =>
      this.#renewMany(chunk, withinMs).catch((error: Error) => chunk.map(() => error)),
    );
    return (await Promise.all(chunks)).flat();
  }

  async #renewMany(requests: readonly RenewRequest[], withinMs: number): Promise<readonly RenewReply[]> {
    const keys = requests.map(({ key }) => key);
    const args = [idsOf(requests), ...lockTimesOf(requests)];
    const read = (reply: unknown): readonly unknown[] => eachDone(reply, requests.length);
    const replies = await this.#scripts.runMany(RENEW, keys, args, withinMs, read);
    if (replies !== "each alone") return replies.map(renewReply);
    const alone = requests.map(async (request) => (await this.#renewMany([request], withinMs))[0] ?? TOO_FEW);
    return (await Promise.allSettled(alone)).map(settledOrError);
  }

  #renewWithToken(request: RenewRequest, withinMs: number): Promise<RenewReply> {
    const { key, requestId, lockTimeMs } = request;
    const keys = [key, this.#fence(key)];
    const args = [requestId, lockTimeMs];
    const renewed = this.#scripts.run(RENEW_WITH_TOKEN, keys, args, withinMs, (reply): RenewReply => {
      const [isRenewed, detail = null] = listOf(reply) as [Figure, (string | null | Error)?];
      if (Number(isRenewed) === 1) return { renewed: true, fencingToken: Number(detail) };
      return renewReply([detail]);
    });
    return this.cluster !== undefined
      ? unlessParted(renewed, (ms) => this.#renewThenDraw(request, ms), withinMs)
      : renewed;
  }

  async #renewThenDraw(request: RenewRequest, withinMs: number): Promise<RenewReply> {
    const startedAt = systemClock.now();
    const [reply = TOO_FEW] = await this.#renewMany([request], withinMs);
    if (reply instanceof Error) throw reply;
    return reply.renewed ? await this.#drawAndRenew(request, startedAt, withinMs) : reply;
  }

  /**
   * Of a hold that the store had after `startedAt`: a token, and a renewal that was sent later. If that is answered before the
   * lock time can be over, nobody else had the key in between, and no larger token.
   */
  async #drawAndRenew(
    request: RenewRequest,
    startedAt: number,
    withinMs: number,
  ): Promise<Renewed | NotHeld> {
    const { key, lockTimeMs } = request;
    const leftMs = (): number => withinMs - (systemClock.now() - startedAt);
    const fencingToken = await this.#scripts.run(DRAW, [this.#fence(key)], [lockTimeMs], leftMs(), Number);
    const [reply = TOO_FEW] = await this.#renewMany([request], leftMs());
    if (reply instanceof Error) throw reply;
    if (!reply.renewed) return reply;
    if (systemClock.now() - startedAt > lockTimeMs * SHARE_FOR_DRAWING) {
      throw new Error("the key's slot migrates, and to draw a fencing token took too long");
    }
    return { renewed: true, fencingToken };
  }

  drop(request: DropRequest, withinMs: number): Promise<DropReply> {
    const { key, requestId, closedForMs } = request;
    const breaksBefore = this.#breaks;
    const read = (reply: unknown): DropReply => {
      const told = this.#dropReply(reply, breaksBefore);
      if (told instanceof Error) throw told;
      return told;
    };
    if (closedForMs !== undefined)
      return this.#scripts.run(CLOSE, [key], [requestId, closedForMs], withinMs, read);
    const dropAlone = (ms: number): Promise<DropReply> =>
      this.#scripts.run(DROP_ALONE, [key], [requestId], ms, read);
    if (!this.#canQueue(key)) return dropAlone(withinMs);
    const dropped = this.#scripts.run(
      DROP,
      [key, this.#queue(key)],
      [requestId, this.#counts],
      withinMs,
      read,
    );
    // In a slot that migrates, those who wait find the key when they look again.
    return this.cluster !== undefined ? unlessParted(dropped, dropAlone, withinMs) : dropped;
  }

  readonly dropMany = async (
    requests: readonly DropRequest[],
    withinMs: number,
  ): Promise<readonly (DropReply | Error)[]> => {
    if (!requests.every(goesWithOthers)) return await eachAlone(requests, (one) => this.drop(one, withinMs));
    const cluster = this.cluster;
    if (cluster === undefined) return await this.#dropTogether(requests, withinMs);
    const breaksBefore = this.#breaks;
    const queued = requests.filter(({ key }) => this.#canQueue(key));
    const others = requests.filter(({ key }) => !this.#canQueue(key));
    const [replies, alone] = await Promise.all([
      askBySlot(cluster, queued, {
        command: (some) => this.#dropCommand(some),
        read: (reply, some) =>
          (some.length === 1 ? [reply] : eachDone(reply, some.length)).map((one) =>
            this.#dropReply(one, breaksBefore),
          ),
        again: (some) => eachAlone(some, (one) => this.drop(one, withinMs)),
      }),
      eachAlone(others, (one) => this.drop(one, withinMs)),
    ]);
    const told = new Map([
      ...queued.map((request, index) => [request, replies[index] ?? TOO_FEW] as const),
      ...others.map((request, index) => [request, alone[index] ?? TOO_FEW] as const),
    ]);
    return requests.map((request) => told.get(request) ?? TOO_FEW);
  };

  #dropCommand(requests: readonly DropRequest[]): Command {
    const queues = requests.map(({ key }) => this.#queue(key));
    return scriptFor(requests.length === 1 ? DROP : DROP_MANY, requests, queues, [this.#counts]);
  }

  async #dropTogether(
    requests: readonly DropRequest[],
    withinMs: number,
  ): Promise<readonly (DropReply | Error)[]> {
    const breaksBefore = this.#breaks;
    const keys = requests.map(({ key }) => key);
    const queues = keys.map((key) => this.#queue(key));
    const args = [idsOf(requests), this.#counts];
    const read = (reply: unknown): readonly unknown[] => eachDone(reply, requests.length);
    const replies = await this.#scripts.runMany(DROP_MANY, [...keys, ...queues], args, withinMs, read);
    if (replies === "each alone") return await eachAlone(requests, (one) => this.drop(one, withinMs));
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

  revoke({ key, requestId }: DropRequest, withinMs: number): Promise<boolean> {
    return this.#scripts.run(REVOKE, [key], [requestId], withinMs, (reply) => {
      if (Number(reply) === 1) return true;
      const holder = holderOf((listOf(reply) as unknown as Found)[0]);
      if (holder instanceof Error) throw holder;
      return false;
    });
  }

  async look(keys: readonly string[], withinMs: number): Promise<readonly (string | Error | undefined)[]> {
    const chunks = chunksOf(
      keys.map((key, index) => ({ key, index })),
      ({ key }) => key,
      this.cluster?.shards,
    );
    const values: (string | Error | undefined)[] = keys.map(() => TOO_FEW);
    await Promise.all(
      chunks.map(async (chunk) => {
        const told = await this.#lookAt(
          chunk.map(({ key }) => key),
          withinMs,
        );
        chunk.forEach(({ index }, nth) => (values[index] = told[nth]));
      }),
    );
    return values;
  }

  async #lookAt(keys: readonly string[], withinMs: number): Promise<readonly (string | Error | undefined)[]> {
    try {
      const replies = await this.#scripts.runMany(LOOK, keys, [], withinMs, listOf);
      if (replies !== "each alone") return (replies as Found[0][]).map(holderOf);
    } catch (error) {
      return keys.map(() => wrapped(error));
    }
    return (await Promise.all(keys.map((key) => this.#lookAt([key], withinMs)))).flat();
  }

  async inspect(key: string, withinMs: number): Promise<Inspection> {
    const inspected = (keys: string[], ms: number): Promise<Inspection> =>
      this.#scripts.run(INSPECT, keys, [], ms, (reply) => inspectionOf(listOf(reply)));
    if (!this.#canQueue(key)) return await inspected([key], withinMs);
    const all = inspected([key, this.#queue(key)], withinMs);
    return await (this.cluster === undefined
      ? all
      : unlessParted(all, (ms) => inspected([key], ms), withinMs));
  }

  async announce({ processNumber, about, forMs }: AnnounceRequest, withinMs: number): Promise<void> {
    await this.#send(withinMs, "set", processName(processNumber), about, "PX", forMs);
  }

  // ---- who comes next ---------------------------------------------------------------------------------

  place(request: PlaceRequest, withinMs: number): Promise<TakeReply> {
    const { key, place, requestId, lockTimeMs, fencing, permits = 1 } = request;
    if (!this.#canQueue(key)) return this.#lookAgain(request, withinMs);
    const keys = this.#queueKeys(key, fencing);
    const inbox = this.#inbox.addressFor(key);
    const before = this.#places.before(place, inbox);
    const args = [place, inbox, requestId, lockTimeMs, this.#counts];
    const breaksBefore = this.#breaks;
    const isShared = permits > 1;
    const [script, more] = isShared ? [PLACE_TO_SHARE, [permits, ...before]] : [PLACE, before];
    const placed = this.#scripts.run(script, keys, [...args, ...more], withinMs, (reply): TakeReply => {
      if (!isShared) return this.#placeReply(listOf(reply), place, inbox, fencing, breaksBefore);
      this.#notePlace(place, inbox, Number(listOf(reply)[0]) !== 1);
      return this.#shareReply(listOf(reply), permits, breaksBefore);
    });
    return this.cluster !== undefined
      ? unlessParted(placed, (ms) => this.#lookAgain(request, ms), withinMs)
      : placed;
  }

  #placeReply(
    reply: readonly unknown[],
    place: string,
    inbox: string,
    fencing: boolean,
    breaksBefore: number,
  ): TakeReply {
    const [isTaken, detail, pttl, isChannelDenied] = reply as [Figure, string?, Figure?, Figure?];
    this.#notePlace(place, inbox, Number(isTaken) !== 1);
    if (Number(isTaken) === 1) return this.#taken(breaksBefore, fencing, detail);
    if (Number(isChannelDenied) === 1) this.warn(CHANNELS_DENIED);
    return notTaken(detail, Number(pttl));
  }

  /** A property, since {@link placeMany} is called by itself. */
  readonly #placeTogether = async (
    requests: readonly PlaceRequest[],
    withinMs: number,
  ): Promise<readonly (TakeReply | Error)[]> => {
    const eachByItself = (): Promise<(TakeReply | Error)[]> =>
      eachAlone(requests, (one) => this.place(one, withinMs));
    const keys = requests.map(({ key }) => key);
    const inbox = this.#inbox.addressFor(keys[0] ?? "");
    if (requests.some(({ place }) => this.#places.before(place, inbox).length > 0))
      return await eachByItself();
    const places = requests.map(({ place }) => place).join("");
    const args = [idsOf(requests), ...lockTimesOf(requests), places, inbox, this.#counts];
    const breaksBefore = this.#breaks;
    const queues = keys.map((key) => this.#queue(key));
    const replies = await this.#scripts.runMany(PLACE_MANY, [...keys, ...queues], args, withinMs, listOf);
    if (replies === "each alone") return await eachByItself();
    return requests.map(({ place }, index) => {
      const reply = replies[index];
      if (!Array.isArray(reply)) return reply instanceof Error ? wrapped(reply) : unexpected(reply);
      return this.#placeReply(reply, place, inbox, false, breaksBefore);
    });
  };

  #notePlace(place: string, inbox: string, stands: boolean): void {
    if (stands) this.#places.stands(place, inbox);
    else this.#places.left(place);
  }

  /** Where no queue can be, or none that could be asked. */
  async #lookAgain(request: PlaceRequest, withinMs: number): Promise<TakeReply> {
    const reply = await this.take(request, withinMs);
    if (reply.taken) return reply;
    // Which may be sent late: it changes nothing.
    return await this.#scripts.run(TIME_LEFT, [request.key], [], withinMs, (left) =>
      notTaken(reply.holder, Number(left)),
    );
  }

  async leave(key: string, place: string, withinMs: number): Promise<void> {
    if (!this.#canQueue(key)) return;
    const inbox = this.#inbox.addressFor(key);
    const before = this.#places.before(place, inbox);
    this.#places.left(place);
    const left = this.#scripts.run(
      LEAVE,
      this.#queueKeys(key, false),
      [place, inbox, this.#counts, ...before],
      withinMs,
      (reply) => {
        if (Number(reply) === 2) this.warn(CHANNELS_DENIED);
      },
    );
    const inParts = (ms: number): Promise<void> => this.#leaveInParts(key, place, [inbox, ...before], ms);
    await unlessParted(left, inParts, withinMs);
  }

  async #leaveInParts(
    key: string,
    place: string,
    inboxes: readonly string[],
    withinMs: number,
  ): Promise<void> {
    const entries = inboxes.flatMap((inbox) => [`${place} ${inbox}`, `-${place} ${inbox}`]);
    await Promise.all([
      this.#scripts.command(withinMs, "zrem", this.#queue(key), ...entries),
      this.#scripts.run(DROP_ALONE, [key], [reservedFor(place)], withinMs, () => {}),
    ]);
  }

  async next(held: DropRequest, request: PlaceRequest, withinMs: number): Promise<NextReply | NotDropped> {
    const { key, place, requestId, lockTimeMs, fencing } = request;
    const dropAlone = async (ms: number): Promise<NextReply | NotDropped> => {
      const reply = await this.drop(held, ms);
      return reply.dropped ? { dropped: true, next: undefined } : reply;
    };
    if (!this.#canQueue(key)) return await dropAlone(withinMs);
    const breaksBefore = this.#breaks;
    const keys = this.#queueKeys(key, fencing);
    const inbox = this.#inbox.addressFor(key);
    const args = [held.requestId, place, inbox, requestId, lockTimeMs, this.#counts];
    const done = this.#scripts.run(NEXT, keys, args, withinMs, (reply): NextReply | NotDropped => {
      const [outcome, detail = null, isChannelDenied] = listOf(reply) as [Figure, Found[0]?, Figure?];
      if (Number(isChannelDenied) === 1) this.warn(CHANNELS_DENIED);
      this.#notePlace(place, inbox, Number(outcome) === 2);
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
    return await unlessParted(done, dropAlone, withinMs);
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
      const warning = evictionWarning(String(await this.client.info?.("memory")));
      if (warning !== undefined) this.warn(warning);
    } catch {
      // Who may not ask is not told.
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const [event, hear] of this.#events) this.client.off(event, hear);
    this.cluster?.shards.close();
    this.#inbox.close();
    this.#closeClient();
  }

  // ---- one of several ---------------------------------------------------------------------------------

  /** From now on all tokens that are drawn for the key are larger than this one, and those that it stands for. */
  async raiseFence(key: string, token: number, lockTimeMs: number, withinMs: number): Promise<void> {
    await this.#scripts.run(RAISE_FENCE, [this.#fence(key)], [token, lockTimeMs], withinMs, () => {});
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
    return this.cluster === undefined || isInSlot(this.#prefix, key);
  }
}

const CHANNELS_DENIED =
  "the Redis user may not use the channels on which those who wait for a lock are told that it is theirs: they find it by looking again, which takes longer. Let it: ACL SETUSER <user> &lockweave:2:*";

/** How much of its lock time a hold may take to get its token, where it is drawn after the grant. */
const SHARE_FOR_DRAWING = 0.9;

/** In a script for many, each id takes up as much room as any other; what is not ours may be of another length. */
function goesWithOthers({ requestId, closedForMs }: DropRequest): boolean {
  return closedForMs === undefined && requestId.length === 32;
}

function inspectionOf(reply: readonly unknown[]): Inspection {
  const [value, left, now, waiting] = reply as [string | null | undefined, Figure, Figure, Figure];
  if (typeof value !== "string") return { holds: [], waiting: Number(waiting) };
  const shares = sharesIn(value)?.map(({ requestId, expiresAt }) => ({
    value: requestId,
    leftMs: expiresAt - Number(now),
  }));
  const holds = shares?.filter(({ leftMs }) => leftMs >= 0) ?? [{ value, leftMs: Number(left) }];
  return { holds, waiting: Number(waiting) };
}
