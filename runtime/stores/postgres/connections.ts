import { afterIo, systemClock, type CancelTimer, type Clock } from "../../base/clock";
import { inRoot } from "../../base/root-context";
import type { NotificationListeners, PostgresPort, PostgresRow, Subscription } from "./client-port";
import { CONNECT_MS, endInTime, type Connection, type OpenConnection } from "./connection";
import { ListeningConnection } from "./listening-connection";
import { keepsConnection, translateError } from "./server-errors";

/** The function of the server that waits for a standby. If the wait is canceled, the transaction is committed, but no standby has confirmed it. */
const WAIT_FOR_STANDBY = "SyncRepWaitForLSN";

/** How long the first connection that did not open in time may still take to open. */
const FIRST_LATE_MS = 1_000;

/** A statement that has no reply yet. */
interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
  readonly timeoutMs: number;
  readonly isUrgent: boolean;
  readonly resolve: (rows: readonly PostgresRow[]) => void;
  readonly reject: (error: Error) => void;
  cancelTimer: CancelTimer;
}

/** A connection, and the statement that it runs, or will run once it is open. */
interface Slot {
  readonly connection: Connection;
  isOpen: boolean;
  statement: Statement | undefined;
  /** The warning that no standby has confirmed the statement. */
  unconfirmed: string | undefined;
}

/** The store's own connections. They open when they are needed. */
export class Connections implements PostgresPort {
  readonly #open: OpenConnection;
  readonly #openListening: OpenConnection;
  readonly #most: number;
  readonly #clock: Clock;
  readonly #slots = new Set<Slot>();
  /** The open connections that run no statement. The last one was used last. */
  readonly #idle: Slot[] = [];
  /**
   * A connection that did not open in the time of its statement. Without this exception, no statement would ever run on a server that needs more time
   * for a connection than a statement has. Further connections try another route meanwhile.
   */
  #late: { readonly slot: Slot; readonly cancelTimer: CancelTimer } | undefined;
  /** How long the next such connection may still take to open. */
  #lateMs = FIRST_LATE_MS;
  /** The statements that wait for a connection, in order. The urgent ones come first. */
  readonly #waiting = new Set<Statement>();
  readonly #urgent = new Set<Statement>();
  readonly #listening = new Set<ListeningConnection>();
  #closing: Promise<void> | undefined;

  /**
   * @param open opens a connection for statements
   * @param most the number of connections for statements that are not urgent. There is one more for those that are
   * @param openListening opens a connection that listens
   */
  constructor(open: OpenConnection, most: number, openListening = open, clock = systemClock) {
    this.#open = open;
    this.#most = most;
    this.#openListening = openListening;
    this.#clock = clock;
  }

  query(
    text: string,
    values: readonly unknown[],
    timeoutMs: number,
    isUrgent = false,
  ): Promise<readonly PostgresRow[]> {
    return new Promise((resolve, reject) => {
      const statement: Statement = { text, values, timeoutMs, isUrgent, resolve, reject, cancelTimer() {} };
      // The connections serve all callers, so they must not run in the async context of this one.
      inRoot(() => this.#begin(statement));
    });
  }

  listen(channel: string, listeners: NotificationListeners): Subscription {
    const listening = inRoot(
      () => new ListeningConnection(this.#openListening, channel, listeners, this.#clock),
    );
    this.#listening.add(listening);
    if (this.#closing !== undefined) void listening.end();
    return {
      ping: () => listening.ping(),
      replace: () => listening.replace(),
      close: () => {
        this.#listening.delete(listening);
        void listening.end();
      },
    };
  }

  close(): Promise<void> {
    this.#closing ??= inRoot(() => this.#close());
    return this.#closing;
  }

  // ---- statements -------------------------------------------------------------------------------------

  #begin(statement: Statement): void {
    if (this.#closing !== undefined) return statement.reject(closed());
    statement.cancelTimer = this.#clock.afterInBackground(statement.timeoutMs, () =>
      afterIo(this.#clock, () => this.#timeOut(statement)),
    );
    this.#queueOf(statement).add(statement);
    this.#sendNext();
  }

  #queueOf({ isUrgent }: Statement): Set<Statement> {
    return isUrgent ? this.#urgent : this.#waiting;
  }

  /** Returns the statement to send next. Those that are not urgent never use the last connection. */
  #next(): Statement | undefined {
    const [urgent] = this.#urgent;
    if (urgent !== undefined) return urgent;
    const [other] = this.#waiting;
    const others = [...this.#slots].filter(({ statement }) => statement?.isUrgent === false);
    return others.length < this.#most ? other : undefined;
  }

  #sendNext(): void {
    const statement = this.#next();
    if (statement === undefined) return;
    let slot: Slot | undefined;
    try {
      slot =
        this.#idle.pop() ??
        this.#unopened((assigned) => assigned === undefined) ??
        (this.#slots.size <= this.#most ? this.#newSlot() : undefined);
    } catch (error) {
      this.#settle(statement, () => statement.reject(translateError(error)));
      return this.#sendNext(); // The others may have better luck.
    }
    if (slot === undefined) return;
    this.#queueOf(statement).delete(statement);
    this.#assign(slot, statement);
  }

  #assign(slot: Slot, statement: Statement): void {
    slot.statement = statement;
    if (slot.isOpen) void this.#run(slot, statement);
  }

  async #run(slot: Slot, statement: Statement): Promise<void> {
    slot.unconfirmed = undefined;
    try {
      const rows = await slot.connection.run(statement.text, statement.values);
      const { unconfirmed } = slot;
      if (unconfirmed === undefined) this.#settle(statement, () => statement.resolve(rows));
      else this.#settle(statement, () => statement.reject(new Error(unconfirmed)));
      this.#free(slot);
    } catch (error) {
      this.#settle(statement, () => statement.reject(translateError(error)));
      if (keepsConnection(error)) this.#free(slot);
      else this.#drop(slot);
    }
  }

  #settle(statement: Statement, how: () => void): void {
    statement.cancelTimer();
    this.#queueOf(statement).delete(statement);
    how();
  }

  #timeOut(statement: Statement): void {
    const { timeoutMs } = statement;
    const fail = (why: string): void => this.#settle(statement, () => statement.reject(new Error(why)));
    if (this.#queueOf(statement).has(statement)) {
      return fail(`all connections to PostgreSQL were busy for ${timeoutMs} ms`);
    }
    const slot = [...this.#slots].find((one) => one.statement === statement);
    if (slot === undefined) return;
    fail(`PostgreSQL did not answer within ${timeoutMs} ms`);
    if (slot.isOpen) {
      // The idle connections may have the same dead route.
      for (const idle of this.#idle.splice(0)) this.#drop(idle);
    } else if (this.#late === undefined) {
      return this.#letOpen(slot);
    }
    this.#drop(slot);
  }

  // ---- connections ------------------------------------------------------------------------------------

  #newSlot(): Slot {
    const connection = this.#open({
      ended: (error) => this.#onEnd(slot, error),
      notified() {},
      warned: ({ routine, message = "" }) => {
        if (routine === WAIT_FOR_STANDBY) slot.unconfirmed = message;
      },
    });
    const slot: Slot = { connection, isOpen: false, statement: undefined, unconfirmed: undefined };
    this.#slots.add(slot);
    void this.#connect(slot);
    return slot;
  }

  async #connect(slot: Slot): Promise<void> {
    try {
      await slot.connection.connect();
    } catch (error) {
      const { statement } = slot;
      if (statement !== undefined) {
        this.#settle(statement, () => statement.reject(translateError(error)));
      }
      return this.#drop(slot);
    }
    slot.isOpen = true;
    this.#lateMs = FIRST_LATE_MS;
    if (slot === this.#late?.slot) this.#addLate(slot);
    else if (slot.statement === undefined) this.#free(slot);
    else void this.#run(slot, slot.statement);
  }

  /** Waits longer until the connection is open, and opens others meanwhile. */
  #letOpen(slot: Slot): void {
    slot.statement = undefined;
    this.#slots.delete(slot);
    const cancelTimer = this.#clock.afterInBackground(this.#lateMs, () => this.#drop(slot));
    this.#lateMs = Math.min(2 * this.#lateMs, CONNECT_MS); // This route may be dead.
    this.#late = { slot, cancelTimer };
    this.#sendNext();
  }

  /** Uses the connection that opened late instead of one that is not open yet. */
  #addLate(slot: Slot): void {
    this.#forgetLate();
    const areAllOpen = [...this.#slots].every(({ isOpen }) => isOpen);
    if (areAllOpen && this.#slots.size > this.#most) return slot.connection.destroy();
    this.#slots.add(slot);
    this.#free(slot);
    const unused = this.#unopened((statement) => statement === undefined);
    if (unused !== undefined) this.#drop(unused);
  }

  #forgetLate(): void {
    this.#late?.cancelTimer();
    this.#late = undefined;
  }

  /** Returns the first connection that is not open yet and whose statement is accepted. */
  #unopened(isWanted: (statement: Statement | undefined) => boolean): Slot | undefined {
    return [...this.#slots].find(({ isOpen, statement }) => !isOpen && isWanted(statement));
  }

  /** Uses the connection for the oldest statement that has none. Such a statement may have a connection that is not open yet. */
  #free(slot: Slot): void {
    slot.statement = undefined;
    if (!this.#slots.has(slot)) return;
    const unopened = this.#unopened((assigned) => assigned !== undefined);
    const statement = unopened?.statement;
    if (unopened !== undefined && statement !== undefined) {
      unopened.statement = undefined;
      return this.#assign(slot, statement);
    }
    this.#idle.push(slot);
    this.#sendNext();
  }

  /** The library may not reject the statement of a connection that has closed. */
  #onEnd(slot: Slot, error: Error): void {
    const { statement } = slot;
    if (statement !== undefined) {
      // The error of the statement itself says more, and comes at the same time.
      afterIo(this.#clock, () => this.#settle(statement, () => statement.reject(translateError(error))));
    }
    this.#drop(slot);
  }

  #drop(slot: Slot): void {
    if (slot === this.#late?.slot) this.#forgetLate();
    else if (!this.#slots.delete(slot)) return;
    const index = this.#idle.indexOf(slot);
    if (index !== -1) this.#idle.splice(index, 1);
    slot.connection.destroy();
    this.#sendNext();
  }

  async #close(): Promise<void> {
    for (const statement of [...this.#urgent, ...this.#waiting])
      this.#settle(statement, () => statement.reject(closed()));
    if (this.#late !== undefined) this.#drop(this.#late.slot);
    const slots = [...this.#slots];
    this.#slots.clear();
    this.#idle.length = 0;
    const endings = slots.map(({ connection, statement }) => {
      if (statement === undefined) return endInTime(connection, this.#clock);
      this.#settle(statement, () => statement.reject(closed()));
      connection.destroy();
      return undefined;
    });
    await Promise.all([...endings, ...Array.from(this.#listening, (one) => one.end())]);
  }
}

function closed(): Error {
  return new Error("the store is closed");
}
