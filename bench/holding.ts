import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { Contestant, Held } from "./contestants/contestant";
import { heapBytes } from "./heap";

export interface Holding {
  readonly count: number;
  readonly keyPrefix: string;
}

export interface HoldingRecord {
  /** The bytes that one held lock adds to the heap, without those of its bare token. */
  readonly heapPerLockBytes: number;
}

/** The number of locks that are acquired at once. A larger number would run into the libraries' timeouts. */
const AT_ONCE = 500;

/** The number of locks that are acquired and released first, so that objects that are created only once do not count. */
const WARM_UP = 1_000;

/** Acquires the locks, and holds them until the process ends. */
export async function acquireAndHold(client: Contestant, holding: Holding): Promise<HoldingRecord> {
  const { count, keyPrefix } = holding;
  const keys = Array.from({ length: count }, (_, index) => `${keyPrefix}:${index}`);
  const tokens: (string | undefined)[] = Array.from({ length: count });
  const held: (Held | undefined)[] = Array.from({ length: count });
  keepAlive.push(keys, held);

  await acquire(client, keys.slice(0, WARM_UP), held);
  await Promise.all(held.slice(0, WARM_UP).map(async (one) => await one?.release()));
  held.fill(undefined);

  const empty = await heapBytes();
  for (let index = 0; index < count; index += 1) tokens[index] = randomBytes(16).toString("hex");
  const tokensOnly = (await heapBytes()) - empty;
  tokens.fill(undefined);

  const before = await heapBytes();
  await acquire(client, keys, held);
  const grown = (await heapBytes()) - before;
  return { heapPerLockBytes: (grown - tokensOnly) / count };
}

/** Requests locks that others hold, and resolves when all calls wait. */
export async function requestAndWait(
  client: Contestant,
  { count, keyPrefix }: Holding,
): Promise<HoldingRecord> {
  const keys = Array.from({ length: count }, (_, index) => `${keyPrefix}:${index}`);
  keepAlive.push(keys);
  const before = await heapBytes();
  for (const key of keys) client.run(key, async () => {}).catch(() => {});
  await pause(ALL_WAIT_AFTER_MS);
  return { heapPerLockBytes: ((await heapBytes()) - before) / count };
}

const ALL_WAIT_AFTER_MS = 5_000;
const keepAlive: unknown[] = [];

async function acquire(
  client: Contestant,
  keys: readonly string[],
  held: (Held | undefined)[],
): Promise<void> {
  for (let first = 0; first < keys.length; first += AT_ONCE) {
    const some = keys.slice(first, first + AT_ONCE);
    await Promise.all(
      some.map(async (key, index) => {
        held[first + index] = await client.hold(key);
      }),
    );
  }
}
