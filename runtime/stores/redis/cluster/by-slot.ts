import { systemClock } from "../../../clock";
import { MOST_AT_ONCE } from "../../port";
import { isBeforeRedis7, isDenied, isUnknownScript, translateError } from "../errors";
import type { Command } from "../many";
import { TOO_FEW } from "../replies";
import { PartedKeysError, type Routes } from "./routes";
import type { Shards } from "./shards";

/** What knows the nodes of a cluster. */
export interface Cluster {
  readonly shards: Shards;
  readonly routes: Routes;
}

/** How many are asked for in a cluster. */
interface ManyBySlot<Request, Reply> {
  /** For some in one slot. */
  command(some: readonly Request[]): Command;
  /** A reply for each of them. */
  read(reply: unknown, some: readonly Request[]): readonly (Reply | Error)[];
  /** Where the one command for all could not be carried out. */
  again(some: readonly Request[]): Promise<readonly (Reply | Error)[]>;
}

/** One command for each slot, and all at once. */
export async function askBySlot<Request extends { readonly key: string }, Reply>(
  { routes, shards }: Cluster,
  requests: readonly Request[],
  { command, read, again }: ManyBySlot<Request, Reply>,
): Promise<readonly (Reply | Error)[]> {
  const chunks = chunksOf(requests, ({ key }) => key, shards);
  const told = await routes.sendAll(chunks.map(command));
  const replies = new Map<Request, Reply | Error>();
  const asked: Promise<void>[] = [];
  const note = (chunk: readonly Request[], some: readonly (Reply | Error)[]): void =>
    chunk.forEach((request, index) => replies.set(request, some[index] ?? TOO_FEW));
  chunks.forEach((chunk, index) => {
    const reply = told[index];
    if (reply instanceof Error && mayAskAgain(reply)) {
      asked.push(again(chunk).then((some) => note(chunk, some)));
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
  await Promise.all(asked);
  return requests.map((request) => replies.get(request) ?? TOO_FEW);
}

/**
 * Those that may go in one command.
 *
 * @param shards of a cluster, where they must be in one slot
 */
export function chunksOf<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  shards: Shards | undefined,
): readonly (readonly Item[])[] {
  const groups = shards === undefined ? [items] : grouped(items, keyOf, shards);
  return groups.flatMap((group) =>
    Array.from({ length: Math.ceil(group.length / MOST_AT_ONCE) }, (_, index) =>
      group.slice(index * MOST_AT_ONCE, (index + 1) * MOST_AT_ONCE),
    ),
  );
}

/** What can be done with one key at a time, where the slot of them all migrates. */
export async function unlessParted<Reply>(
  asked: Promise<Reply>,
  inParts: (leftMs: number) => Promise<Reply>,
  timeoutMs: number,
): Promise<Reply> {
  const startedAt = systemClock.now();
  try {
    return await asked;
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

function mayAskAgain(error: Error): boolean {
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
