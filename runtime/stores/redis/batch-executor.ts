import { MOST_AT_ONCE } from "../port";
import type { Cluster } from "./cluster/cluster";
import { KeysOnTwoNodesError } from "./cluster/routes";
import type { Command } from "./command";
import { isBeforeRedis7, isDenied, isUnknownScript, translateError } from "./errors";
import {
  commandForOne,
  eachAlone,
  type Executor,
  type ForMany,
  type Keyed,
  type Operation,
} from "./executor";
import { replyAt, TOO_FEW } from "./replies";
import type { Server } from "./server";
import { sendScript } from "./unknown-script";

/** Requests that go in one command, or one request that goes alone. */
interface Chunk<Request extends Keyed, Reply> {
  readonly operation: Operation<Request, Reply>;
  readonly requests: Request[];
  /** The position of each request among all that were passed together. */
  readonly positions: number[];
  readonly isAlone: boolean;
}

/** Requests of one kind that go in one command. */
type Together<Request extends Keyed, Reply> = Readonly<Pick<Chunk<Request, Reply>, "operation">> & {
  readonly requests: readonly Request[];
};

/** Sends many requests together, in as few commands as possible. */
export class BatchExecutor {
  readonly #server: Server;
  readonly #executor: Executor;

  constructor(server: Server, executor: Executor) {
    this.#server = server;
    this.#executor = executor;
  }

  /**
   * Sends all commands at the same time. Resolves to a reply or an error for each request, in order. If a command fails, its requests share
   * one error.
   */
  async many<Request extends Keyed, Reply>(
    requests: readonly Request[],
    operationFor: (request: Request) => Operation<Request, Reply>,
    timeoutMs: number,
  ): Promise<readonly (Reply | Error)[]> {
    const breaksBefore = this.#server.breaks;
    const operation = this.#commonOperation(requests, operationFor);
    if (operation !== undefined)
      return await this.#together({ operation, requests }, timeoutMs, breaksBefore);
    const replies: (Reply | Error)[] = requests.map(() => TOO_FEW);
    const note = ({ positions }: Chunk<Request, Reply>, chunkReplies: readonly (Reply | Error)[]): void =>
      positions.forEach((position, index) => (replies[position] = chunkReplies[index] as Reply | Error));
    const send = async (chunk: Chunk<Request, Reply>): Promise<void> =>
      note(chunk, await this.#together(chunk, timeoutMs, breaksBefore));
    const { cluster } = this.#server;
    const chunks = this.#chunksOf(requests, operationFor);
    if (cluster === undefined) await Promise.all(chunks.map(send));
    else {
      const refused = this.#bySlot(
        cluster,
        chunks.filter(({ isAlone }) => !isAlone),
        timeoutMs,
        breaksBefore,
        note,
      );
      const alone = chunks.filter(({ isAlone }) => isAlone).map(send);
      await Promise.all([...alone, refused.then((some) => Promise.all(some.map(send)))]);
    }
    return replies;
  }

  /** Returns the operation if all requests have the same one, and fit in one command. Most do, so no lists are built for them. */
  #commonOperation<Request extends Keyed, Reply>(
    requests: readonly Request[],
    operationFor: (request: Request) => Operation<Request, Reply>,
  ): Operation<Request, Reply> | undefined {
    const [first] = requests;
    if (first === undefined || requests.length > MOST_AT_ONCE || this.#server.cluster !== undefined)
      return undefined;
    const common = operationFor(first);
    const isCommon = (request: Request): boolean =>
      operationFor(request) === common && this.#fits(common, request);
    return requests.every(isCommon) ? common : undefined;
  }

  /** Splits requests into groups that may go in one command. In a cluster, the keys of a group are in one slot. */
  #chunksOf<Request extends Keyed, Reply>(
    requests: readonly Request[],
    operationFor: (request: Request) => Operation<Request, Reply>,
  ): readonly Chunk<Request, Reply>[] {
    const shards = this.#server.cluster?.shards;
    const chunks: Chunk<Request, Reply>[] = [];
    const open = new Map<Operation<Request, Reply>, Map<number, Chunk<Request, Reply>>>();
    for (const [position, request] of requests.entries()) {
      const operation = operationFor(request);
      if (!this.#fits(operation, request)) {
        chunks.push({ operation, requests: [request], positions: [position], isAlone: true });
        continue;
      }
      const bySlot = open.get(operation) ?? new Map<number, Chunk<Request, Reply>>();
      open.set(operation, bySlot);
      const slot = shards?.slotOf(request.key) ?? 0;
      let chunk = bySlot.get(slot);
      if (chunk === undefined || chunk.requests.length === MOST_AT_ONCE) {
        chunk = { operation, requests: [], positions: [], isAlone: false };
        bySlot.set(slot, chunk);
        chunks.push(chunk);
      }
      chunk.requests.push(request);
      chunk.positions.push(position);
    }
    return chunks;
  }

  /** Whether the request may go in one command with others. */
  #fits<Request extends Keyed, Reply>(operation: Operation<Request, Reply>, request: Request): boolean {
    const { many, withoutQueue } = operation;
    if (many === undefined || many.fits?.(request) === false) return false;
    return withoutQueue === undefined || this.#server.canQueue(request.key);
  }

  /**
   * Sends one command for each slot. There may be thousands, so one promise serves all of them. Returns the chunks that must be sent in
   * another way.
   */
  async #bySlot<Request extends Keyed, Reply>(
    { routes }: Cluster,
    chunks: readonly Chunk<Request, Reply>[],
    timeoutMs: number,
    breaksBefore: number,
    note: (chunk: Chunk<Request, Reply>, chunkReplies: readonly (Reply | Error)[]) => void,
  ): Promise<readonly Chunk<Request, Reply>[]> {
    const sent = await routes.sendAll(
      chunks.map(({ operation, requests }) => commandFor(operation, requests)),
      timeoutMs,
    );
    const mayHaveRunTwice = this.#server.breaks !== breaksBefore;
    return chunks.filter((chunk, index) => {
      const reply = sent[index];
      if (reply instanceof Error && needsOtherWay(reply)) return true;
      note(chunk, readAll(chunk, reply, mayHaveRunTwice));
      return false;
    });
  }

  /**
   * Sends requests in one command. If Redis refuses it because of one key, sends each request alone. Never rejects.
   *
   * @param breaksBefore how often connections had broken before the first command for these requests
   */
  async #together<Request extends Keyed, Reply>(
    chunk: Together<Request, Reply>,
    timeoutMs: number,
    breaksBefore: number,
  ): Promise<readonly (Reply | Error)[]> {
    const { operation, requests } = chunk;
    const { beforeRedis7 } = operation;
    const alone = (request: Request): Promise<Reply> =>
      this.#executor.one(operation, request, timeoutMs, breaksBefore);
    if (requests.length === 1) return await eachAlone(requests, alone);
    let reply: unknown;
    try {
      reply = await sendScript(this.#server, commandFor(operation, requests), timeoutMs);
    } catch (thrown) {
      const error = translateError(thrown);
      if (error instanceof KeysOnTwoNodesError || isDenied(error.cause))
        return await eachAlone(requests, alone);
      return requests.map(() => error);
    }
    if (beforeRedis7 !== undefined && Array.isArray(reply) && reply.some(isBeforeRedis7))
      return await eachAlone(requests, (request) => beforeRedis7(request, timeoutMs, breaksBefore));
    return readAll(chunk, reply, this.#server.breaks !== breaksBefore);
  }
}

function readAll<Request extends Keyed, Reply>(
  { operation, requests }: Together<Request, Reply>,
  reply: unknown,
  mayHaveRunTwice: boolean,
): readonly (Reply | Error)[] {
  const { one, many } = operation;
  const replies = attempted(() => {
    if (reply instanceof Error) throw reply;
    if (many === undefined || (one !== undefined && requests.length === 1)) return [reply];
    return many.each(reply, requests.length);
  });
  if (replies instanceof Error) return requests.map(() => replies);
  return requests.map((request, index) => {
    try {
      return operation.read(replyAt(replies, index), request, mayHaveRunTwice);
    } catch (error) {
      return translateError(error);
    }
  });
}

function attempted<Reply>(read: () => Reply): Reply | Error {
  try {
    return read();
  } catch (error) {
    return translateError(error);
  }
}

/** Whether a command of a cluster can succeed in another way: with the source of its script, one key at a time, or without SET. */
function needsOtherWay(error: Error): boolean {
  return (
    error instanceof KeysOnTwoNodesError || isUnknownScript(error) || isDenied(error) || isBeforeRedis7(error)
  );
}

function commandFor<Request extends Keyed, Reply>(
  operation: Operation<Request, Reply>,
  requests: readonly Request[],
): Command {
  const [request] = requests;
  if (request !== undefined && requests.length === 1) return commandForOne(operation, request);
  const { run, args } = operation.many as ForMany<Request>;
  const keysOfEach = requests.map(operation.keys);
  const columns = keysOfEach[0]?.length ?? 0;
  const keys: string[] = [];
  for (let column = 0; column < columns; column += 1)
    for (const some of keysOfEach) keys.push(some[column] ?? "");
  return { name: "evalsha", script: run, keys, args: args(requests) };
}
