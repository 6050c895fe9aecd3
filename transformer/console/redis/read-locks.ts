import { auxiliaryKey } from "../../../runtime/stores/redis/keys";
import { isShared } from "../../../runtime/stores/value";
import { MOST_HOLDS, MOST_WAITERS } from "../port/deployment";
import { cannotRead } from "../port/errors";
import type { Server, Words } from "./server";
import type { StoredLock } from "../port/stored-lock";
import { lockIn, MOST_BYTES, type LockReply, type Share } from "./lock-reply";

/** The number of keys that one round trip reads. */
const AT_ONCE = 200;
const COMMANDS_PER_KEY = 4;
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
export async function readLocks(server: Server, prefix: string, keys: readonly string[]): Promise<Reading> {
  const found: StoredLock[] = [];
  const free: string[] = [];
  let commands = 0;
  for (let from = 0; from < keys.length; from += AT_ONCE) {
    const some = keys.slice(from, from + AT_ONCE);
    const replies = await readAll(server, prefix, some, FIRST_BYTES);
    commands += COMMANDS_PER_KEY * some.length + replies.filter(isOfShared).length;
    for (const reply of replies) {
      const isCut = reply.value !== undefined && Buffer.byteLength(reply.value) >= FIRST_BYTES;
      if (isCut) commands += 1;
      const whole = isCut ? await withLength(server, prefix, reply) : reply;
      if (isFree(whole)) free.push(whole.key);
      else found.push(lockIn(whole));
    }
  }
  return { found, free, commands };
}

/** Reads one lock with its whole value, up to {@link MOST_BYTES}. */
export async function readLock(server: Server, prefix: string, key: string): Promise<Reading> {
  const [reply] = await readAll(server, prefix, [key], MOST_BYTES);
  const isThere = reply !== undefined && !isFree(reply);
  return {
    found: isThere ? [lockIn(reply)] : [],
    free: isThere ? [] : [key],
    commands: COMMANDS_PER_KEY,
  };
}

function isFree({ value, hasOtherData, waiting }: LockReply): boolean {
  return value === undefined && !hasOtherData && waiting === 0;
}

async function readAll(
  server: Server,
  prefix: string,
  keys: readonly string[],
  maxBytes: number,
): Promise<LockReply[]> {
  const commands = keys.flatMap((key): Words[] => {
    const queue = prefix + auxiliaryKey("queue", prefix, key);
    return [
      ["getrange", prefix + key, 0, maxBytes - 1],
      ["pttl", prefix + key],
      ["zcount", queue, "(0", "+inf"],
      ["zrangebyscore", queue, "(0", "+inf", "LIMIT", 0, MOST_WAITERS],
    ];
  });
  const replies = await sendAll(server, commands);
  for (const reply of replies) {
    if (reply instanceof Error && !IS_ELSEWHERE.test(reply.message) && !IS_OTHER_DATA.test(reply.message))
      throw cannotRead(reply);
  }
  const locks = keys.map((key, index): LockReply => {
    const [value, left, waiting, waiters] = replies.slice(
      COMMANDS_PER_KEY * index,
      COMMANDS_PER_KEY * (index + 1),
    );
    const leftMs = Number(left);
    return {
      key,
      value: typeof value === "string" && leftMs !== NO_KEY ? value : undefined,
      bytes: undefined,
      hasOtherData: value instanceof Error && IS_OTHER_DATA.test(value.message),
      leftMs,
      waiting: Number(waiting ?? 0) || 0,
      waiters: Array.isArray(waiters) ? waiters : [],
      shares: [],
    };
  });
  const shared = locks.filter(isOfShared);
  if (shared.length === 0) return locks;
  const shares = await readShares(server, prefix, shared);
  return locks.map((lock) => Object.assign(lock, { shares: shares.get(lock.key) ?? [] }));
}

function isOfShared({ value }: LockReply): boolean {
  return value !== undefined && isShared(value);
}

async function readShares(
  server: Server,
  prefix: string,
  locks: readonly LockReply[],
): Promise<ReadonlyMap<string, readonly Share[]>> {
  const commands = locks.map(({ key }): Words => {
    const holds = prefix + auxiliaryKey("holds", prefix, key);
    return ["zrevrangebyscore", holds, "+inf", 1, "WITHSCORES", "LIMIT", 0, MOST_HOLDS];
  });
  const replies = await sendAll(server, commands);
  return new Map(locks.map(({ key }, index) => [key, sharesIn(replies[index])]));
}

async function sendAll(server: Server, commands: readonly Words[]): Promise<readonly unknown[]> {
  try {
    return await server.sendAll(commands);
  } catch (error) {
    throw cannotRead(error);
  }
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
async function withLength(server: Server, prefix: string, reply: LockReply): Promise<LockReply> {
  try {
    return { ...reply, bytes: Number(await server.send("strlen", prefix + reply.key)) };
  } catch (error) {
    throw cannotRead(error);
  }
}
