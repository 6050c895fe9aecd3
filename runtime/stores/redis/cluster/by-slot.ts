import { systemClock } from "../../../base/clock";
import { partsOf } from "../../../base/tick-batch";
import { MOST_AT_ONCE } from "../../port";
import { isBeforeRedis7, isDenied, isUnknownScript, translateError } from "../errors";
import type { Command } from "../many";
import { TOO_FEW } from "../replies";
import { PartedKeysError, type Routes } from "./routes";
import type { Shards } from "./shards";

/** The nodes of a cluster, and the way to them. */
export interface Cluster {
  readonly shards: Shards;
  readonly routes: Routes;
}

/** How to send many requests to a cluster, with one command for each slot. */
interface ManyBySlot<Request, Reply> {
  /** Returns one command for requests whose keys are in one slot. */
  command(some: readonly Request[]): Command;
  /** Returns a reply for each request from the reply of the command. */
  read(reply: unknown, some: readonly Request[]): readonly (Reply | Error)[];
  /** Sends the requests in another way, because the cluster could not run the one command. */
  again(some: readonly Request[]): Promise<readonly (Reply | Error)[]>;
}

/** Sends one command for each slot, all at the same time. */
export async function askBySlot<Request extends { readonly key: string }, Reply>(
  { routes, shards }: Cluster,
  requests: readonly Request[],
  { command, read, again }: ManyBySlot<Request, Reply>,
): Promise<readonly (Reply | Error)[]> {
  const chunks = chunksOf(requests, ({ key }) => key, shards);
  const commandReplies = await routes.sendAll(chunks.map(command));
  const replies = new Map<Request, Reply | Error>();
  const retries: Promise<void>[] = [];
  const note = (chunk: readonly Request[], some: readonly (Reply | Error)[]): void =>
    chunk.forEach((request, index) => replies.set(request, some[index] ?? TOO_FEW));
  chunks.forEach((chunk, index) => {
    const reply = commandReplies[index];
    if (reply instanceof Error && canRetry(reply)) {
      retries.push(again(chunk).then((some) => note(chunk, some)));
    } else if (reply instanceof Error) {
      note(
        chunk,
        chunk.map(() => translateError(reply)),
      );
    } else {
      note(
        chunk,
        attempted(() => read(reply, chunk), chunk.length),
      );
    }
  });
  await Promise.all(retries);
  return requests.map((request) => replies.get(request) ?? TOO_FEW);
}

/**
 * Splits items into groups that may go in one command.
 *
 * @param shards the nodes of a cluster, if there is one. There, the keys of a group are in one slot
 */
export function chunksOf<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  shards: Shards | undefined,
): readonly (readonly Item[])[] {
  const groups = shards === undefined ? [items] : grouped(items, keyOf, shards);
  return groups.flatMap((group) => (group.length === 0 ? [] : partsOf(group, MOST_AT_ONCE)));
}

/** Returns the reply. If it failed because the slot of the keys is migrating, runs `inParts` instead, which uses one key at a time. */
export async function unlessParted<Reply>(
  reply: Promise<Reply>,
  inParts: (leftMs: number) => Promise<Reply>,
  timeoutMs: number,
): Promise<Reply> {
  const startedAt = systemClock.now();
  try {
    return await reply;
  } catch (error) {
    if (!(error instanceof PartedKeysError)) throw error;
    return await inParts(timeoutMs - (systemClock.now() - startedAt));
  }
}

function grouped<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  shards: Shards,
): readonly (readonly Item[])[] {
  const groups = new Map<number, Item[]>();
  for (const item of items) {
    const slot = shards.slotOf(keyOf(item));
    const group = groups.get(slot);
    if (group === undefined) groups.set(slot, [item]);
    else group.push(item);
  }
  return [...groups.values()];
}

function canRetry(error: Error): boolean {
  return (
    error instanceof PartedKeysError || isUnknownScript(error) || isDenied(error) || isBeforeRedis7(error)
  );
}

function attempted<Reply>(read: () => readonly (Reply | Error)[], count: number): readonly (Reply | Error)[] {
  try {
    return read();
  } catch (error) {
    return Array.from({ length: count }, () => translateError(error));
  }
}
