import { asError } from "../../base/errors";
import { formatValue } from "../../base/format-value";
import type { PostgresPort } from "./client-port";
import { StatementError } from "./client-port";
import { isMissing, needsIsolation, translateError } from "./errors";
import { inSchema } from "./schema-name";
import { VERSION_QUERY } from "./schema/version";

/** The functions of the schema that the store and the console call. */
export type Command =
  | "acquire_v1"
  | "enqueue_v1"
  | "dequeue_v1"
  | "renew_v1"
  | "renew_groups_v1"
  | "release_v1"
  | "release_and_enqueue_v1"
  | "peek_v1"
  | "inspect_v1"
  | "revoke_v1"
  | "free_v1"
  | "announce_v1"
  | "locks_v1"
  | "announcements_v1";

/** The commands of holders. They must not wait until other callers leave a connection. */
const OF_HOLDERS: ReadonlySet<Command> = new Set(["renew_v1", "renew_groups_v1", "release_v1"]);

/** A request as the functions of the schema read it. */
export interface Row {
  readonly [field: string]: string | number | boolean | readonly Row[] | readonly string[] | undefined;
}

/** A function for one request that has no other fields than these. It costs the server half as much as one that reads JSON. */
interface PlainFunction {
  readonly fields: ReadonlySet<string>;
  readonly text: string;
}

const PLAIN: ReadonlyMap<Command, PlainFunction> = new Map([
  [
    "acquire_v1",
    {
      fields: new Set(["key", "request_id", "lock_ms"]),
      text: "SELECT lockweave.acquire_plain_v1($1::text, $2::text, $3::double precision, $4::integer) AS reply",
    },
  ],
  [
    "release_v1",
    {
      fields: new Set(["key", "request_id"]),
      text: "SELECT lockweave.release_plain_v1($1::text, $2::text, $3::integer) AS reply",
    },
  ],
]);

interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** The server gets this part of the time to wait for other transactions. Then its error, which explains the failure, arrives in time. */
export const SERVER_SHARE = 0.9;

/** The largest value of `lock_timeout`. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** A wake-up that a command has noted: the channel of the waiter's process, and its ticket. */
export type WakeUp = readonly [inbox: string, ticket: string];

/** Receives what replies report besides their results. */
export interface StatementsOwner {
  /** The server replies again after it did not. */
  onReconnect(): void;
  /** Waiters to notify, because a command has committed. */
  onWakeUps(wakeUps: readonly WakeUp[]): void;
}

/** Calls the functions of the schema. Each call is one statement and one transaction. */
export class Statements {
  readonly #port: PostgresPort;
  readonly #schema: string;
  readonly #owner: StatementsOwner;
  /** The texts of statements for this schema, by those for the default one. */
  readonly #texts = new Map<string, string>();
  /** Whether the user's settings begin transactions in which locks would not be safe, so that each command begins another one. */
  #isIsolated = false;
  /** Whether the last reply was lost. */
  #isBroken = false;

  constructor(port: PostgresPort, schema: string, owner: StatementsOwner) {
    this.#port = port;
    this.#schema = schema;
    this.#owner = owner;
  }

  /** Calls a function, and returns its list of replies. An error says what is wrong and what to do, if that is known. */
  async call(
    command: Command,
    requests: readonly (Row | string)[],
    timeoutMs: number,
  ): Promise<readonly unknown[]> {
    const statement = (): Statement =>
      this.#plainStatement(command, requests) ?? this.#statement(command, requests);
    const replies = this.#withoutWakeUps(
      listOf(await this.#send(statement, timeoutMs, OF_HOLDERS.has(command))),
    );
    const replicas = requests.reduce((most, request) => Math.max(most, replicasOf(request)), 0);
    if (replicas > 0) await this.#assertStillConfirmed(replicas, timeoutMs);
    return replies;
  }

  /** Reports the wake-ups at the end of the list, if there are any, and returns the other replies. */
  #withoutWakeUps(replies: readonly unknown[]): readonly unknown[] {
    const last = replies.at(-1);
    if (typeof last !== "object" || last === null || !("wake_ups" in last)) return replies;
    this.#owner.onWakeUps(last.wake_ups as readonly WakeUp[]);
    return replies.slice(0, -1);
  }

  /**
   * If the list of standbys becomes empty while a commit waits for them, the commit succeeds, and the server does not say that nobody has confirmed
   * it. So this reads the list again.
   *
   * @throws {Error} if a commit waits for fewer standbys now. The outcome of the commands is then unknown
   */
  async #assertStillConfirmed(replicas: number, timeoutMs: number): Promise<void> {
    const text = "SELECT lockweave.confirmations_v1() AS reply";
    const rows = await this.#port.query(this.#inSchema(text), [], timeoutMs);
    const confirmations = Number(rows[0]?.["reply"]);
    if (confirmations >= replicas) return;
    throw new Error(
      `synchronous_standby_names changed while a commit waited, so it is unknown whether ${replicas} standbys confirmed the lock`,
    );
  }

  /** Returns the ID of the database. */
  async databaseId(timeoutMs: number): Promise<string> {
    const text = inSchema(this.#schema, "SELECT a.id::text AS reply FROM lockweave.about a");
    try {
      const rows = await this.#port.query(text, [], timeoutMs);
      return String(rows[0]?.["reply"]);
    } catch (error) {
      throw translateError(asError(error), this.#schema);
    }
  }

  async #send(statement: () => Statement, timeoutMs: number, isUrgent: boolean): Promise<unknown> {
    try {
      const { text, values } = statement();
      const serverTimeoutMs = Math.min(Math.ceil(timeoutMs * SERVER_SHARE), LONGEST_TIMEOUT_MS);
      const all = [...values, serverTimeoutMs];
      const rows = await this.#port.query(this.#inSchema(text), all, timeoutMs, isUrgent);
      this.#replied();
      return parse(rows[0]?.["reply"]);
    } catch (error) {
      if (needsIsolation(error) && !this.#isIsolated) {
        this.#isIsolated = true;
        return await this.#send(statement, timeoutMs, isUrgent);
      }
      if (error instanceof StatementError) this.#replied();
      else this.#isBroken = true;
      const version = isMissing(error) ? await this.#version(timeoutMs) : undefined;
      throw translateError(asError(error), this.#schema, version);
    }
  }

  /** Returns the version that the schema has, or undefined if there is none. */
  async #version(timeoutMs: number): Promise<number | undefined> {
    try {
      const rows = await this.#port.query(inSchema(this.#schema, VERSION_QUERY), [], timeoutMs);
      return Number(rows[0]?.["version"]);
    } catch {
      return undefined;
    }
  }

  #statement(command: Command, requests: unknown): Statement {
    const text = this.#isIsolated
      ? `CALL lockweave.isolated_v1('${command}', $1::text, $2::integer, NULL)`
      : `SELECT lockweave.${command}($1::text, $2::integer) AS reply`;
    return { text, values: [JSON.stringify(requests)] };
  }

  /** Returns a statement without JSON for one request that needs nothing else. */
  #plainStatement(command: Command, requests: readonly (Row | string)[]): Statement | undefined {
    const [request] = requests;
    const plain = PLAIN.get(command);
    if (plain === undefined || this.#isIsolated) return undefined;
    if (request === undefined || requests.length > 1 || typeof request === "string") return undefined;
    const { fields, text } = plain;
    for (const field in request) {
      const value = request[field];
      if (value !== undefined && value !== false && !fields.has(field)) return undefined;
    }
    return { text, values: Array.from(fields, (field) => request[field]) };
  }

  #inSchema(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    const own = inSchema(this.#schema, text);
    this.#texts.set(text, own);
    return own;
  }

  #replied(): void {
    if (!this.#isBroken) return;
    this.#isBroken = false;
    this.#owner.onReconnect();
  }
}

function replicasOf(request: Row | string): number {
  return typeof request === "string" ? 0 : Number(request["replicas"] ?? 0);
}

function parse(reply: unknown): unknown {
  if (typeof reply !== "string") throw unexpected(reply);
  return JSON.parse(reply);
}

function listOf(reply: unknown): readonly unknown[] {
  if (Array.isArray(reply)) return reply;
  throw unexpected(reply);
}

function unexpected(reply: unknown): Error {
  return new Error(`PostgreSQL sent an unexpected reply: ${formatValue(reply)}`);
}
