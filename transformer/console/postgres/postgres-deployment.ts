import { LONGEST_ANNOUNCEMENT } from "../../../runtime/base/limits";
import { LockError } from "../../../runtime/base/errors";
import type { PostgresPort } from "../../../runtime/stores/postgres/client-port";
import { isTextOfLongKey, keyOf, storedKey } from "../../../runtime/stores/postgres/keys";
import { openPort } from "../../../runtime/stores/postgres/open-port";
import { Statements, type Command, type Row } from "../../../runtime/stores/postgres/statements";
import type { ReadTarget } from "../../../runtime/stores/postgres/target";
import { UsageError } from "../../terminal/usage-error";
import {
  MOST_HOLDS,
  MOST_LOCKS,
  MOST_WAITERS,
  type Announcements,
  type Connected,
  type Deployment,
  type FoundLock,
  type Scan,
} from "../port/deployment";
import { ask, errorMessage } from "../port/errors";
import { storedLockOf } from "../port/stored-lock";
import { addressOf, OPTION } from "./address";
import { patternOf } from "./pattern";

export interface PostgresTarget {
  /** The URL of the database. */
  readonly postgres: string;
  readonly schema: string;
  /** A pattern of the keys of locks, with the syntax of `SCAN` in Redis. */
  readonly match: string;
}

/** The time after which a statement, or an attempt to connect, fails. */
const TIMEOUT_MS = 5_000;

const CHECK = "check that the server runs, and that the URL has its host and its port";

/**
 * Connects to the database.
 *
 * @throws {UsageError} if the database cannot be reached, or lacks the tables, or does not let the role read them
 */
export async function openPostgres(target: PostgresTarget): Promise<Deployment> {
  const { name, target: read } = addressOf(target.postgres, target.schema);
  const deployment = new PostgresDeployment(name, target, connectionsTo(read));
  try {
    await deployment.probe();
    return deployment;
  } catch (error) {
    deployment.close();
    const message = errorMessage(error);
    const fix = message.includes("Fix: ") ? "" : `. Fix: ${CHECK}`;
    throw new UsageError(`Cannot read ${name}: ${message}${fix}.`);
  }
}

/** @throws {UsageError} if the library cannot read the URL, or none is installed */
function connectionsTo(target: ReadTarget): PostgresPort {
  try {
    return openPort(target, OPTION);
  } catch (error) {
    throw error instanceof LockError ? new UsageError(`${errorMessage(error)}.`) : error;
  }
}

const IS_BEGINNING = "contains only the beginning of a long key. Fix: use the whole key.";

/** The replies of the functions in the schema. */
interface LocksReply {
  /** The number of all keys that match. */
  readonly keys: number;
  readonly locks: readonly {
    readonly key: string;
    readonly waiting: number;
    readonly waiters: readonly string[] | null;
    readonly holds:
      | readonly {
          readonly value: string;
          readonly left_ms: number;
          readonly guarded_by: string | null;
        }[]
      | null;
  }[];
}

interface AnnouncementReply {
  readonly number: string;
  readonly about: string;
  readonly left_ms: number;
}

class PostgresDeployment implements Deployment {
  readonly names: readonly string[];
  readonly #target: PostgresTarget;
  readonly #port: PostgresPort;
  readonly #statements: Statements;

  constructor(name: string, target: PostgresTarget, port: PostgresPort) {
    this.names = [name];
    this.#target = target;
    this.#port = port;
    this.#statements = new Statements(port, target.schema, { onReconnect() {}, onWakeUps() {} });
  }

  /** Rejects if the locks cannot be read. */
  async probe(): Promise<void> {
    await this.#locks({ key: "" });
  }

  async scan(): Promise<Scan> {
    const { keys, locks } = await ask(() => this.#locks({ pattern: patternOf(this.#target.match) }));
    return {
      locks: locks.map((lock) => lockIn(lock, keyOf(lock.key))),
      keys,
      scanned: keys,
      isWhole: true,
      leftOut: keys - locks.length,
      masters: 1,
      unanswered: 0,
      commands: 1,
    };
  }

  async read(key: string): Promise<FoundLock | undefined> {
    const isBeginning = isTextOfLongKey(key);
    const { locks } = await ask(() => this.#locks({ key: isBeginning ? key : storedKey(key) }));
    const [lock] = locks;
    return lock && { ...lockIn(lock, key), refusal: isBeginning ? IS_BEGINNING : undefined };
  }

  async announcements(numbers: readonly string[]): Promise<Announcements> {
    const request = { numbers, most: LONGEST_ANNOUNCEMENT };
    // The locks themselves were read. A process without an announcement is shown by its number.
    const replies = await this.#call("announcements_v1", request).catch(() => []);
    const found = (replies as readonly AnnouncementReply[]).map(
      ({ number, about, left_ms: leftMs }) => [number, { about, leftMs }] as const,
    );
    return { found: new Map(found), commands: 1 };
  }

  async connect(): Promise<Connected> {
    const { postgres: url, schema } = this.#target;
    return { configuration: { postgres: { url, schema, connections: 1 } }, close() {} };
  }

  close(): void {
    void this.#port.close();
  }

  async #locks(which: { readonly key: string } | { readonly pattern: string }): Promise<LocksReply> {
    const limits = { most_keys: MOST_LOCKS, most_holds: MOST_HOLDS, most_waiters: MOST_WAITERS };
    const [reply] = await this.#call("locks_v1", { ...which, ...limits });
    return reply as LocksReply;
  }

  #call(command: Command, request: Row): Promise<readonly unknown[]> {
    return this.#statements.call(command, [request], TIMEOUT_MS);
  }
}

function lockIn({ waiting, waiters, holds }: LocksReply["locks"][number], key: string): FoundLock {
  const stored = (holds ?? []).map(({ value, left_ms: leftMs, guarded_by: by }) => ({
    value,
    leftMs,
    guardedBy: by ?? undefined,
  }));
  const queue = { waiting, waiters: waiters ?? [], refusal: undefined };
  return { ...storedLockOf(key, stored, queue), masters: 1 };
}
