import { listenInRoot } from "../../../base/root-context";
import { ConnectionClosedError, type OwnConnection, type OwnConnectionOptions } from "../client-port";
import type { RedisClient, RedisPipeline } from "../client";
import { wordsOf, type Command } from "../command";
import { Database } from "./database";

/** A connection that is duplicated from a `Redis` for one purpose. */
interface Duplicate extends RedisClient {
  pipeline(): RedisPipeline;
  disconnect(): void;
}

/** A `Redis`, from which such connections are duplicated. A `Cluster` does not accept these overrides. */
export interface Duplicable {
  duplicate(overrides: Readonly<Record<string, unknown>>): Duplicate;
}

/**
 * On a dead route, the server does not answer when ioredis closes the connection. So ioredis waits for that only briefly. If the connection has
 * closed already, ioredis waits as well, and keeps the process alive.
 */
export const CLOSES_FAST = { disconnectTimeout: 50 } as const;

/** Options of a connection that sends no command twice, and is not reopened once it has ended. */
const PRIVATE_CONNECTION = {
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: null,
  enableOfflineQueue: true,
  enableAutoPipelining: false,
  autoResubscribe: false,
  failoverDetector: false,
  readOnly: false,
  lazyConnect: false,
  keyPrefix: "",
  retryStrategy: (): null => null,
} as const;

/** @param prefix the prefix of the client, which the connection itself does not add */
export function openOwn(
  redis: Duplicable,
  prefix: string,
  { database, onEnd }: OwnConnectionOptions,
): OwnConnection {
  // The ready check waits until the server has loaded its data.
  const own = redis.duplicate({
    ...PRIVATE_CONNECTION,
    ...(database === undefined ? { enableReadyCheck: false } : { db: database }),
  });
  const guard = database === undefined ? undefined : new Database(own);
  listenInRoot(own, {
    error() {}, // Each command reports its own failure.
    end: onEnd,
  });
  return {
    async exec(commands) {
      const replies = await exec(own.pipeline(), commands, prefix);
      if (guard?.fault !== undefined) throw guard.fault;
      return replies;
    },
    close: () => own.disconnect(),
  };
}

/** Sends the commands in one write. Resolves to a reply or an error for each. */
export async function exec(
  pipeline: RedisPipeline,
  commands: readonly Command[],
  prefix: string,
): Promise<readonly unknown[]> {
  for (const command of commands) pipeline.call(...wordsOf(withPrefix(command, prefix)));
  const replies = await pipeline.exec();
  return commands.map((_, index) => {
    const [error, reply] = replies?.[index] ?? NOT_RUN;
    return error === null ? reply : portError(error);
  });
}

function withPrefix(command: Command, prefix: string): Command {
  return prefix === "" ? command : { ...command, keys: command.keys.map((key) => prefix + key) };
}

function portError(error: Error): Error {
  return error.message === CLOSED ? new ConnectionClosedError(CLOSED, { cause: error }) : error;
}

/** The error of ioredis for each command without a reply when the connection closes. */
export const CLOSED = "Connection is closed.";

const NOT_RUN: [error: Error, reply: unknown] = [new Error("Redis did not run the pipeline"), undefined];
