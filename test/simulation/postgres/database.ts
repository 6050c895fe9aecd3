import type { PostgresRow } from "../../../runtime/stores/postgres/client-port";
import { NOT_HELD } from "../../../runtime/stores/postgres/schema/guard";
import type { WakeUp } from "../../../runtime/stores/postgres/statements";
import { NOTIFY } from "../../../runtime/stores/postgres/wake-ups";
import { LeaseFunctions, SerializationFailure, type Guarding, type LeaseCommand } from "./lease-functions";
import { DuplicateKey, LeaseRows, type Rows, type Surroundings } from "./lease-rows";

/** Returns an error as the server sends one. */
export function serverError(code: string, message: string, severity: "ERROR" | "FATAL" = "ERROR"): Error {
  return Object.assign(new Error(message), { code, severity });
}

/** The functions for one simple request, with the command that does the same. */
const PLAIN: ReadonlyMap<string, LeaseCommand> = new Map([
  ["acquire_plain_v1($1::text, $2::text, $3::double precision, $4::integer)", "acquire_v1"],
  ["release_plain_v1($1::text, $2::text, $3::integer)", "release_v1"],
]);

/** What the store may send to the server. */
export type Statement =
  | { readonly kind: "command"; readonly command: LeaseCommand; readonly requests: readonly unknown[] }
  | { readonly kind: "notify"; readonly wakeUps: readonly WakeUp[] }
  | { readonly kind: "listen"; readonly channel: string }
  | { readonly kind: "database ID" }
  | { readonly kind: "ping" };

/** Reads a statement of the store. Throws if the model does not know it. */
export function readStatement(text: string, values: readonly unknown[]): Statement {
  const [first, second] = values.map(String);
  const command = /^SELECT "lockweave"\.(\w+_v1)\(\$1::text, \$2::integer\) AS reply$/.exec(text)?.[1];
  if (command !== undefined) {
    const requests = JSON.parse(first ?? "") as readonly unknown[];
    return { kind: "command", command: command as LeaseCommand, requests };
  }
  const call = /^SELECT "lockweave"\.(.+) AS reply$/.exec(text)?.[1] ?? "";
  const plain = PLAIN.get(call);
  if (plain !== undefined) {
    const request = { key: first, request_id: second, ...(plain === "acquire_v1" && { lock_ms: values[2] }) };
    return { kind: "command", command: plain, requests: [request] };
  }
  const channel = /^LISTEN "(.+)"$/.exec(text)?.[1];
  if (channel !== undefined) return { kind: "listen", channel };
  if (text === NOTIFY) return { kind: "notify", wakeUps: JSON.parse(first ?? "") as readonly WakeUp[] };
  if (text === 'SELECT a.id::text AS reply FROM "lockweave".about a') return { kind: "database ID" };
  if (text === "SELECT 1") return { kind: "ping" };
  throw new Error(`The model does not know the statement: ${text}`);
}

/** The database of the model. Each command is one transaction. */
export class LeaseDatabase {
  static readonly id = "00000000-0000-4000-8000-000000000000";
  readonly rows: LeaseRows;
  readonly functions: LeaseFunctions;
  #transactions = 0;

  constructor(server: Surroundings) {
    this.rows = new LeaseRows(server);
    this.functions = new LeaseFunctions(this.rows);
  }

  /** Runs a command, and returns its reply. If it fails, nothing of it happens. */
  run(command: LeaseCommand, requests: readonly unknown[]): readonly PostgresRow[] {
    const before = this.rows.snapshot;
    this.rows.wakeUps = [];
    try {
      const replies = this.functions.run(command, requests);
      const { wakeUps } = this.rows;
      const all = wakeUps.length === 0 ? replies : [...replies, { wake_ups: wakeUps }];
      return [{ reply: JSON.stringify(all) }];
    } catch (error) {
      this.rows.restore(before);
      if (!(error instanceof DuplicateKey)) throw error;
      throw serverError("23505", "duplicate key value violates unique constraint");
    }
  }

  begin(isRepeatable: boolean): Transaction {
    this.#transactions += 1;
    return new Transaction(this, 700 + this.#transactions, isRepeatable);
  }
}

/** A transaction of the application. It knows the statements of a guard. */
export class Transaction {
  readonly #database: LeaseDatabase;
  readonly #number: number;
  /** The data that were committed when it began, if it sees only those. */
  readonly #seen: Rows | undefined;
  #hasNumber = false;
  #state: "open" | "failed" | "ended" = "open";

  constructor(database: LeaseDatabase, number: number, isRepeatable: boolean) {
    this.#database = database;
    this.#number = number;
    this.#seen = isRepeatable ? database.rows.snapshot : undefined;
  }

  get isOpen(): boolean {
    return this.#state === "open";
  }

  query(text: string): { readonly rows: readonly PostgresRow[] } {
    if (this.#state === "ended") throw serverError("57P01", "terminating connection", "FATAL");
    if (this.#state === "failed") throw serverError("25P02", "current transaction is aborted");
    return { rows: [{ guarded: this.#answer(text) }] };
  }

  #answer(text: string): string {
    const hex = /^SELECT "lockweave"\.guard_v1\('(\w+)'\) AS guarded$/.exec(text)?.[1];
    if (hex === undefined) return this.#hasNumber ? String(this.#number) : "";
    const { holds } = JSON.parse(Buffer.from(hex, "hex").toString()) as {
      readonly holds: readonly Guarding[];
    };
    const held = this.#guard(holds);
    const lost = holds.filter(({ request_id }) => !held.includes(request_id));
    if (lost.length > 0) {
      this.#abort();
      throw serverError(NOT_HELD, `not held: ${lost.map(({ request_id }) => request_id).join()}`);
    }
    this.#hasNumber = true;
    return String(this.#number);
  }

  #guard(wanted: readonly Guarding[]): readonly string[] {
    try {
      return this.#database.functions.guard(this, wanted, this.#seen);
    } catch (error) {
      this.#abort();
      if (!(error instanceof SerializationFailure)) throw error;
      throw serverError("40001", "could not serialize access due to concurrent update");
    }
  }

  /** After an error, the server unlocks its rows, and waits for the end of the transaction. */
  #abort(): void {
    this.#state = "failed";
    this.#database.rows.unlockAll(this);
  }

  /** Commits it or rolls it back. Both unlock its rows. */
  end(): void {
    this.#state = "ended";
    this.#database.rows.unlockAll(this);
  }
}
