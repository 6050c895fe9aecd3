import { systemClock } from "../../base/clock";
import { KeysOnTwoNodesError } from "./cluster/routes";
import type { Argument, Command } from "./command";
import { isBeforeRedis7, isUnknownScript, translateError } from "./errors";
import { replyAt } from "./replies";
import type { Script } from "./scripts/script";
import type { Server } from "./server";
import { sendWithSource } from "./unknown-script";

/** A request about one lock. */
export interface Keyed {
  readonly key: string;
}

/**
 * One kind of request to Redis: the command that it becomes, and the meaning of the reply. The rows of `ExclusiveCommands`, `QueueCommands`, and
 * `SharedCommands` are all operations.
 */
export type Operation<Request extends Keyed, Reply> = Row<Request, Reply> &
  (
    | { readonly one: ForOne<Request>; readonly many?: ForMany<Request> }
    /** The script for many requests also serves one. */
    | { readonly one?: undefined; readonly many: ForMany<Request> }
  );

interface Row<Request, Reply> {
  /** The keys of the command for one request. */
  readonly keys: (request: Request) => readonly string[];
  /**
   * Converts the reply to one request. May throw.
   *
   * @param mayHaveRunTwice whether the client may have sent the command again, because a connection broke before the reply
   */
  readonly read: (reply: unknown, request: Request, mayHaveRunTwice: boolean) => Reply;
  /** Only in a cluster: replaces a command whose keys cannot be in one slot, because no other key can be in the slot of the lock. */
  readonly withoutQueue?: Substitute<Request, Reply>;
  /** Only in a cluster: replaces a command whose keys are on two nodes, while their slot migrates. Its own commands have one key each. */
  readonly inParts?: Substitute<Request, Reply>;
  /** Replaces a command that only Redis 7 and later have. */
  readonly beforeRedis7?: Substitute<Request, Reply>;
}

/** @param breaksBefore how often connections had broken before the first command for this request */
type Substitute<Request, Reply> = (
  request: Request,
  timeoutMs: number,
  breaksBefore: number,
) => Promise<Reply>;

/** The command for one request. */
interface ForOne<Request> {
  /** A script, or the name of another command. */
  readonly run: Script | string;
  readonly args: (request: Request) => readonly Argument[];
}

/** One command for many requests. Its keys are the first keys of all requests, then their second keys, and so on. */
export interface ForMany<Request> {
  readonly run: Script;
  readonly args: (requests: readonly Request[]) => readonly Argument[];
  /** Whether the request may be one of many. By default, each may. */
  readonly fits?: (request: Request) => boolean;
  /** Converts the reply of the script to a list with a reply for each request. */
  readonly each: (reply: unknown, count: number) => readonly unknown[];
}

/** Sends single requests to a server or a cluster. A `BatchExecutor` sends many together. */
export class Executor {
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
  }

  /** @param breaksBefore how often connections had broken before the first command for this request */
  one<Request extends Keyed, Reply>(
    operation: Operation<Request, Reply>,
    request: Request,
    timeoutMs: number,
    breaksBefore = this.#server.breaks,
  ): Promise<Reply> {
    return this.#server.cluster === undefined
      ? this.#send(operation, request, timeoutMs, breaksBefore)
      : this.#sendToCluster(operation, request, timeoutMs, breaksBefore);
  }

  #send<Request extends Keyed, Reply>(
    operation: Operation<Request, Reply>,
    request: Request,
    timeoutMs: number,
    breaksBefore: number,
  ): Promise<Reply> {
    const server = this.#server;
    const command = commandForOne(operation, request);
    const dueAt = command.script === undefined ? Infinity : systemClock.now() + timeoutMs;
    const read = (reply: unknown): Reply => {
      const own = operation.one === undefined ? replyAt(operation.many.each(reply, 1), 0) : reply;
      return operation.read(own, request, server.breaks !== breaksBefore);
    };
    return server.transport.send(command, timeoutMs).then(read, async (thrown: unknown) => {
      if (isUnknownScript(thrown)) return read(await sendWithSource(server, command, dueAt));
      const error = translateError(thrown);
      const { beforeRedis7 } = operation;
      if (beforeRedis7 === undefined || !isBeforeRedis7(error)) throw error;
      return await beforeRedis7(request, timeoutMs, breaksBefore);
    });
  }

  #sendToCluster<Request extends Keyed, Reply>(
    operation: Operation<Request, Reply>,
    request: Request,
    timeoutMs: number,
    breaksBefore: number,
  ): Promise<Reply> {
    const { withoutQueue, inParts } = operation;
    if (withoutQueue !== undefined && !this.#server.canQueue(request.key))
      return withoutQueue(request, timeoutMs, breaksBefore);
    const startedAt = systemClock.now();
    const reply = this.#send(operation, request, timeoutMs, breaksBefore);
    if (inParts === undefined) return reply;
    return reply.catch((error: unknown) => {
      if (!(error instanceof KeysOnTwoNodesError)) throw error;
      return inParts(request, timeoutMs - (systemClock.now() - startedAt), breaksBefore);
    });
  }
}

/** Returns the command for a request that is sent alone. */
export function commandForOne<Request extends Keyed, Reply>(
  operation: Operation<Request, Reply>,
  request: Request,
): Command {
  const keys = operation.keys(request);
  if (operation.one === undefined) {
    const { run, args } = operation.many;
    return { name: "evalsha", script: run, keys, args: args([request]) };
  }
  const { run } = operation.one;
  const args = operation.one.args(request);
  return typeof run === "string" ? { name: run, keys, args } : { name: "evalsha", script: run, keys, args };
}

/** The keys of a command that needs only the key of the lock. */
export function lockOnly({ key }: Keyed): readonly string[] {
  return [key];
}

/** Sends each request alone. Resolves to a reply or an error for each, in order. */
export async function eachAlone<Request, Reply>(
  requests: readonly Request[],
  ask: (request: Request) => Promise<Reply>,
): Promise<(Reply | Error)[]> {
  return (await Promise.allSettled(requests.map(ask))).map((settled) =>
    settled.status === "fulfilled" ? settled.value : translateError(settled.reason),
  );
}
