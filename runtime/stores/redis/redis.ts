import { v4 as uuid } from "uuid";
import {
  MOST_AT_ONCE,
  type AcquireReply,
  type AcquireRequest,
  type Granted,
  type Released,
  type ReleaseReply,
  type ReleaseRequest,
  type RenewReply,
  type RenewRequest,
  type Store,
} from "../store";
import {
  assertClient,
  connect,
  isCluster,
  type RedisClient,
  type RedisNode,
  type RedisSubscriber,
} from "./redis-client";
import { isBeforeRedis7, wrapped } from "./redis-errors";
import {
  ACQUIRE,
  ACQUIRE_MANY,
  HAND_ON,
  LEAVE,
  RELEASE_ALONE,
  RELEASE_MANY,
  RELEASE_ONE,
  RENEW_MANY,
  WAIT,
  type Script,
} from "./redis-scripts";

/**
 * Locks in Redis: the key holds the `requestId`, its time to live is the lock time.
 *
 * What is asked for many keys in one turn of the event loop goes in one script, except to a cluster. A second
 * connection, for hints, is opened when somebody first waits. `client` stays the caller's: `close()` does not
 * touch it.
 */
export function redisStore(client: RedisClient): Store {
  assertClient(client);
  return new RedisStore(client, () => {});
}

/**
 * The same over a connection of the store's own.
 *
 * @throws {LockOptionError} when `url` is no `redis://` or `rediss://` address
 * @throws {LockMisconfiguredError} when ioredis is not installed
 */
export function redisStoreAt(url: string): Store {
  const client = connect(url);
  return new RedisStore(client, () => client.disconnect());
}

/** How a client tells that a connection broke: a `Redis`, and a `Cluster` of one of its nodes. */
const BREAKS = ["close", "-node"];

class RedisStore implements Store {
  readonly #client: RedisClient;
  readonly #closeClient: () => void;
  readonly #inbox = `lockweave:inbox:${uuid()}`;
  readonly #listeners = new Set<(requestId: string | undefined) => void>();
  #subscriber: RedisSubscriber | undefined;
  #setCanGet = true;
  #breaks = 0;
  readonly #countBreak = (): void => void (this.#breaks += 1);
  readonly acquireMany: Store["acquireMany"];
  readonly releaseMany: Store["releaseMany"];

  constructor(client: RedisClient, closeClient: () => void) {
    this.#client = client;
    this.#closeClient = closeClient;
    if (!isCluster(client)) {
      this.acquireMany = (requests) => this.#acquireMany(requests);
      this.releaseMany = (requests) => this.#releaseMany(requests);
    }
    for (const event of BREAKS) client.on(event, this.#countBreak);
  }

  // ---- acquire ----------------------------------------------------------------------------------------

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { key, requestId, lockTimeMs, fencing } = request;
    if (fencing || !this.#setCanGet) return this.#acquireByScript(request);
    // One command that is safe to send again: GET tells a lost reply to this request from a foreign holder.
    return this.#client.call("set", key, requestId, "PX", lockTimeMs, "NX", "GET").then(
      (holder) => replyFrom(holder as string | null, requestId),
      (error: unknown) => {
        if (!isBeforeRedis7(error)) throw wrapped(error);
        this.#setCanGet = false;
        return this.#acquireByScript(request);
      },
    );
  }

  async #acquireMany(requests: readonly AcquireRequest[]): Promise<(AcquireReply | Error)[]> {
    if (!this.#setCanGet) {
      // The error of one is not that of the others.
      return await Promise.all(
        requests.map((request) => this.#acquireByScript(request).catch((error: Error) => error)),
      );
    }
    const keys = requests.map(({ key }) => key);
    const args = [idsOf(requests), ...lockTimesOf(requests)];
    const replies = await this.#run(ACQUIRE_MANY, keys, args, (reply) => reply as (string | null | Error)[]);
    if (replies.some(isBeforeRedis7)) {
      this.#setCanGet = false;
      return await this.#acquireMany(requests);
    }
    return replies.map((reply, index) =>
      reply instanceof Error ? wrapped(reply) : replyFrom(reply, requests[index]?.requestId),
    );
  }

  #acquireByScript({ key, requestId, lockTimeMs, fencing }: AcquireRequest): Promise<AcquireReply> {
    const keys = fencing ? [key, `${this.#stem(key)}:fence`] : [key];
    const args = [requestId, lockTimeMs, fencing ? "1" : "0"];
    return this.#run(ACQUIRE, keys, args, (reply) => {
      const [outcome, token] = reply as ["fresh" | "again" | "held", string?];
      return outcome === "held" ? HELD : granted(outcome === "fresh", fencing, token);
    });
  }

  // ---- wait -------------------------------------------------------------------------------------------

  wait(request: AcquireRequest): Promise<AcquireReply> {
    const { key, requestId, lockTimeMs, fencing } = request;
    if (!this.#canQueue(key)) return this.#waitAlone(request);
    this.#openInbox();
    const keys = this.#queueKeys(key, fencing);
    return this.#run(WAIT, keys, [requestId, this.#inbox, lockTimeMs], (reply) => {
      const [outcome, detail] = reply as ["granted" | "held", (string | number)?];
      return outcome === "granted" ? granted(true, fencing, detail) : heldFor(Number(detail));
    });
  }

  async #waitAlone(request: AcquireRequest): Promise<AcquireReply> {
    const reply = await this.acquire(request);
    return reply.granted ? reply : heldFor(Number(await this.#command("pttl", request.key)));
  }

  leave(key: string, requestId: string): Promise<void> {
    const nothing = (): void => {};
    if (!this.#canQueue(key)) return this.#run(RELEASE_ALONE, [key], [requestId], nothing);
    return this.#run(LEAVE, this.#queueKeys(key, false), [requestId, this.#inbox], nothing);
  }

  listen(onHint: (requestId: string | undefined) => void): () => void {
    this.#listeners.add(onHint);
    return () => this.#listeners.delete(onHint);
  }

  #openInbox(): void {
    if (this.#subscriber !== undefined) return;
    // We subscribe ourselves on each "ready". A `Redis` would too, and leave a failure of that to nobody.
    const client: RedisNode = this.#client;
    const subscriber = isCluster(client) ? client.duplicate() : client.duplicate({ autoResubscribe: false });
    this.#subscriber = subscriber;
    const tell = (requestId: string | undefined): void => {
      for (const onHint of this.#listeners) onHint(requestId);
    };
    subscriber.on("error", () => {}); // Who hears nothing still looks again in time.
    subscriber.on("message", (_channel, requestId) => tell(requestId));
    // What was published while the connection was down, or not yet up, is gone: everybody looks again.
    subscriber.on("ready", () => {
      subscriber.subscribe(this.#inbox).then(
        () => tell(undefined),
        () => {},
      );
    });
    subscriber.subscribe(this.#inbox).catch(() => {}); // A client with `lazyConnect` connects for it.
  }

  // ---- hold and release -------------------------------------------------------------------------------

  async renew(holders: readonly RenewRequest[]): Promise<RenewReply[]> {
    const most = isCluster(this.#client) ? 1 : MOST_AT_ONCE;
    const chunks = Array.from({ length: Math.ceil(holders.length / most) }, (_, index) =>
      holders.slice(index * most, (index + 1) * most),
    );
    const replies = await Promise.allSettled(chunks.map((chunk) => this.#renewMany(chunk)));
    // One node of a cluster that does not answer says nothing about the keys of the others.
    return replies.flatMap((reply, index) =>
      reply.status === "fulfilled" ? reply.value : (chunks[index] ?? []).map(() => "unknown" as const),
    );
  }

  #renewMany(holders: readonly RenewRequest[]): Promise<RenewReply[]> {
    const keys = holders.map(({ key }) => key);
    const args = [idsOf(holders), ...lockTimesOf(holders)];
    return this.#run(RENEW_MANY, keys, args, (replies) => replies as RenewReply[]);
  }

  release(key: string, requestId: string, next?: AcquireRequest): Promise<Released> {
    return next !== undefined && this.#canQueue(key)
      ? this.#handOn(requestId, next)
      : this.#releaseOne(key, requestId);
  }

  #releaseOne(key: string, requestId: string): Promise<Released> {
    const breaksBefore = this.#breaks;
    const read = (outcome: unknown): Released => this.#confirmed(outcome as ReleaseReply, breaksBefore);
    if (!this.#canQueue(key)) return this.#run(RELEASE_ALONE, [key], [requestId], read);
    return this.#run(RELEASE_ONE, this.#queueKeys(key, false), [requestId], read);
  }

  #releaseMany(requests: readonly ReleaseRequest[]): Promise<(Released | Error)[]> {
    const breaksBefore = this.#breaks;
    const keys = requests.map(({ key }) => key);
    const queues = keys.map((key) => `${this.#stem(key)}:queue`);
    return this.#run(RELEASE_MANY, [...keys, ...queues], [idsOf(requests)], (replies) =>
      (replies as ReleaseReply[]).map((outcome) =>
        this.#isSure(outcome, breaksBefore) ? released(outcome) : doubtful(),
      ),
    );
  }

  #confirmed(outcome: ReleaseReply, breaksBefore: number): Released {
    if (!this.#isSure(outcome, breaksBefore)) throw doubtful();
    return released(outcome);
  }

  /** ioredis sends a command again, unasked, when the connection broke under it: the first may have released. */
  #isSure(outcome: ReleaseReply, breaksBefore: number): boolean {
    return outcome === "released" || this.#breaks === breaksBefore;
  }

  #handOn(requestId: string, next: AcquireRequest): Promise<Released> {
    this.#openInbox();
    const breaksBefore = this.#breaks;
    const keys = this.#queueKeys(next.key, next.fencing);
    const args = [requestId, next.requestId, this.#inbox, next.lockTimeMs];
    return this.#run(HAND_ON, keys, args, (reply) => {
      const [outcome, token] = reply as [ReleaseReply | "handed on" | "queued", string?];
      if (outcome === "queued") return QUEUED;
      if (outcome !== "handed on") return this.#confirmed(outcome, breaksBefore);
      return { outcome: "released", handedOn: granted(true, next.fencing, token) };
    });
  }

  async close(): Promise<void> {
    for (const event of BREAKS) this.#client.off(event, this.#countBreak);
    this.#subscriber?.disconnect();
    this.#closeClient();
  }

  // ---- keys and commands: their names in small letters, as ioredis needs no others ------------------------

  #queueKeys(key: string, fencing: boolean): string[] {
    const stem = this.#stem(key);
    const keys = [key, `${stem}:queue`];
    if (fencing) keys.push(`${stem}:fence`);
    return keys;
  }

  /**
   * How keys begin that live in the cluster slot of `key`: Redis hashes what stands between the first `{` and the
   * next `}`, and where nothing stands there the whole key, with the prefix that the client puts before it.
   */
  #stem(key: string): string {
    const prefix = this.#client.options.keyPrefix ?? "";
    return hasHashTag(prefix + key) ? key : `{${prefix}${key}}`;
  }

  /** In a cluster, a `}` outside a hash tag leaves no way to name another key of the same slot. */
  #canQueue(key: string): boolean {
    if (!isCluster(this.#client)) return true;
    const full = (this.#client.options.keyPrefix ?? "") + key;
    return hasHashTag(full) || !full.includes("}");
  }

  /**
   * EVALSHA, and EVAL once where the server does not know the script (after a restart or SCRIPT FLUSH).
   *
   * @param read what the reply means
   */
  #run<Meaning>(
    { source, sha1 }: Script,
    keys: string[],
    args: (string | number)[],
    read: (reply: unknown) => Meaning,
  ): Promise<Meaning> {
    return this.#client
      .call("evalsha", sha1, keys.length, ...keys, ...args)
      .then(read, async (error: unknown) => {
        if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw wrapped(error);
        return read(await this.#command("eval", source, keys.length, ...keys, ...args));
      });
  }

  #command(name: string, ...args: (string | number)[]): Promise<unknown> {
    return this.#client.call(name, ...args).catch((error: unknown) => {
      throw wrapped(error);
    });
  }
}

// The replies without figures are made once.
const FRESH: Granted = { granted: true, fresh: true };
const AGAIN: Granted = { granted: true, fresh: false };
const HELD: AcquireReply = { granted: false, freeInMs: undefined };
const RELEASED: Released = { outcome: "released" };
const QUEUED: Released = { outcome: "released", isQueued: true };

function doubtful(): Error {
  return new Error("the connection broke under the release, which Redis may have carried out");
}

function released(outcome: ReleaseReply): Released {
  return outcome === "released" ? RELEASED : { outcome };
}

/** @param holder who held the key before the command */
function replyFrom(holder: string | null, requestId: string | undefined): AcquireReply {
  if (holder === null) return FRESH;
  return holder === requestId ? AGAIN : HELD;
}

function granted(fresh: boolean, fencing: boolean, token: string | number | undefined): Granted {
  if (!fencing) return fresh ? FRESH : AGAIN;
  return { granted: true, fresh, fencingToken: Number(token) };
}

/** PTTL answers -1 for a key that never expires, and the scripts do for those who are not next. */
function heldFor(pttl: number): AcquireReply {
  return { granted: false, freeInMs: pttl === -1 ? undefined : Math.max(pttl, 0) };
}

function idsOf(requests: readonly { readonly requestId: string }[]): string {
  return requests.map(({ requestId }) => requestId).join("");
}

function lockTimesOf(requests: readonly { readonly lockTimeMs: number }[]): number[] {
  const times = requests.map(({ lockTimeMs }) => lockTimeMs);
  return times.every((time) => time === times[0]) ? times.slice(0, 1) : times;
}

function hasHashTag(key: string): boolean {
  return key.includes("{") && /^[^{]*\{[^}]+\}/.test(key);
}
