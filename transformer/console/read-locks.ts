import type { Redis } from "ioredis";
import { nameBeside } from "../../runtime/stores/redis/keys";
import { isShared } from "../../runtime/stores/value";
import { cannotRead } from "./errors";
import { storedLockOf, MOST_BYTES, type StoredLock, type LockReply, type Share } from "./stored-lock";

/** The number of keys that one round trip reads. */
const AT_ONCE = 200;
const COMMANDS_PER_KEY = 4;
const MOST_WAITERS = 20;
/** The most holds that are read of a shared lock. */
const MOST_SHARES = 100;
/** The number of bytes that are read first. Nearly all values are shorter. */
const FIRST_BYTES = 4_096;
/** The error if the key is on another node of the cluster. */
const IS_ELSEWHERE = /^(?:MOVED|ASK)\b/;
const IS_OTHER_DATA = /^WRONGTYPE\b/;
/** The reply of PTTL if the key does not exist. */
const NO_KEY = -2;

export interface Reading {
  readonly found: readonly StoredLock[];
  /** The keys that nobody holds and nobody waits for. */
  readonly free: readonly string[];
  readonly commands: number;
}

/**
 * Reads the state of these locks: a few kilobytes of each, and the last holds of shared locks.
 *
 * @param prefix the client's `keyPrefix`
 * @throws {UsageError} if the server rejects a command or does not answer
 */
export async function readLocks(redis: Redis, prefix: string, keys: readonly string[]): Promise<Reading> {
  const found: StoredLock[] = [];
  const free: string[] = [];
  let commands = 0;
  for (let from = 0; from < keys.length; from += AT_ONCE) {
    const some = keys.slice(from, from + AT_ONCE);
    const replies = await readAll(redis, prefix, some, FIRST_BYTES);
    commands += COMMANDS_PER_KEY * some.length + replies.filter(isOfShared).length;
    for (const reply of replies) {
      const isCut = reply.value !== undefined && Buffer.byteLength(reply.value) >= FIRST_BYTES;
      if (isCut) commands += 1;
      const whole = isCut ? await withLength(redis, prefix, reply) : reply;
      if (isFree(whole)) free.push(whole.key);
      else found.push(storedLockOf(whole));
    }
  }
  return { found, free, commands };
}

/** Reads one lock with its whole value, up to {@link MOST_BYTES}. */
export async function readLock(redis: Redis, prefix: string, key: string): Promise<Reading> {
  const [reply] = await readAll(redis, prefix, [key], MOST_BYTES);
  const isThere = reply !== undefined && !isFree(reply);
  return {
    found: isThere ? [storedLockOf(reply)] : [],
    free: isThere ? [] : [key],
    commands: COMMANDS_PER_KEY,
  };
}

function isFree({ value, hasOtherData, waiting }: LockReply): boolean {
  return value === undefined && !hasOtherData && waiting === 0;
}

async function readAll(
  redis: Redis,
  prefix: string,
  keys: readonly string[],
  maxBytes: number,
): Promise<LockReply[]> {
  const pipeline = redis.pipeline();
  for (const key of keys) {
    const queue = prefix + nameBeside("queue", prefix, key);
    pipeline.getrange(prefix + key, 0, maxBytes - 1).pttl(prefix + key);
    pipeline.zcount(queue, "(0", "+inf").zrangebyscore(queue, "(0", "+inf", "LIMIT", 0, MOST_WAITERS);
  }
  const replies = await pipeline.exec().catch((error: unknown) => {
    throw cannotRead(error);
  });
  for (const [error] of replies ?? []) {
    if (error !== null && !IS_ELSEWHERE.test(error.message) && !IS_OTHER_DATA.test(error.message))
      throw cannotRead(error);
  }
  const locks = keys.map((key, index): LockReply => {
    const [text, left, waiting, waiters] = (replies ?? []).slice(
      COMMANDS_PER_KEY * index,
      COMMANDS_PER_KEY * (index + 1),
    );
    const [value, leftMs] = [text?.[1], Number(left?.[1])];
    return {
      key,
      value: typeof value === "string" && leftMs !== NO_KEY ? value : undefined,
      bytes: undefined,
      hasOtherData: text?.[0] != null && IS_OTHER_DATA.test(text[0].message),
      leftMs,
      waiting: Number(waiting?.[1] ?? 0) || 0,
      waiters: Array.isArray(waiters?.[1]) ? waiters[1] : [],
      shares: [],
    };
  });
  const shared = locks.filter(isOfShared);
  if (shared.length === 0) return locks;
  const shares = await readShares(redis, prefix, shared);
  return locks.map((lock) => Object.assign(lock, { shares: shares.get(lock.key) ?? [] }));
}

function isOfShared({ value }: LockReply): boolean {
  return value !== undefined && isShared(value);
}

async function readShares(
  redis: Redis,
  prefix: string,
  locks: readonly LockReply[],
): Promise<ReadonlyMap<string, readonly Share[]>> {
  const pipeline = redis.pipeline();
  for (const { key } of locks) {
    const holds = prefix + nameBeside("holds", prefix, key);
    pipeline.zrevrangebyscore(holds, "+inf", 1, "WITHSCORES", "LIMIT", 0, MOST_SHARES);
  }
  const replies = await pipeline.exec().catch((error: unknown) => {
    throw cannotRead(error);
  });
  return new Map(locks.map(({ key }, index) => [key, sharesIn(replies?.[index]?.[1])]));
}

/** Parses a list of alternating members and scores. */
function sharesIn(reply: unknown): Share[] {
  const flat: readonly unknown[] = Array.isArray(reply) ? reply : [];
  return Array.from({ length: flat.length / 2 }, (_, index) => ({
    requestId: String(flat[2 * index]),
    expiresAt: Number(flat[2 * index + 1]),
  }));
}

/** Adds the length of a value that was cut. */
async function withLength(redis: Redis, prefix: string, reply: LockReply): Promise<LockReply> {
  try {
    return { ...reply, bytes: await redis.strlen(prefix + reply.key) };
  } catch (error) {
    throw cannotRead(error);
  }
}
