import type { Clock } from "../../base/clock";
import { TickBatch } from "../../base/tick-batch";
import { MOST_AT_ONCE, type RenewReply, type RenewRequest } from "../port";
import type { OwnConnection } from "./client-port";
import { idsOf, lockTimesOf, type Command } from "./command";
import { isUnknownScript, translateError } from "./errors";
import { listOf, renewReply, TOO_FEW } from "./replies";
import { CONFIRM } from "./scripts/confirm";

/** With less time left, nothing is sent. */
const LEAST_MS = 5;
/**
 * A server checks only ten times a second whether a WAIT has timed out, and its reply must arrive in time. So WAIT ends this much earlier.
 */
const WAIT_IS_LATE_MS = 300;

/** Precedes a command for a slot that may be migrating to this server. */
const ASKING: Command = { name: "asking", keys: [], args: [] };

/** A hold that replicas are to confirm. */
interface PendingHold {
  readonly request: RenewRequest;
  /**
   * Whether ASKING must precede the command, because the slot may be migrating to this server. Such a hold goes in a command of its own.
   */
  readonly isAsking: boolean;
  readonly dueAt: number;
  readonly settle: (reply: RenewReply) => void;
}

interface Connection {
  readonly own: OwnConnection;
  /** Whether the server may not have the script. */
  isNew: boolean;
}

/**
 * Renews holds at one master. A hold counts as renewed once enough replicas of the master have it. WAIT blocks its connection, and waits
 * only for the writes of that connection. So this connection is used for nothing else: it sends a renewal, and then WAIT. The renewal also
 * shows that the server still has the hold. After a failover, WAIT alone might succeed on another server.
 *
 * There is one batch at a time. Requests that arrive in the meantime go into the next one. A batch has no deadline of its own: its WAIT
 * lasts as long as the longest timeout in it, and each of the other requests times out by itself.
 */
export class Confirmer {
  readonly #openOwn: (onEnd: () => void) => OwnConnection | undefined;
  readonly #replicas: number;
  readonly #slotOf: (key: string) => number;
  readonly #clock: Clock;
  #connection: Connection | undefined;
  readonly #arriving = new TickBatch<PendingHold>((holds) => {
    for (const hold of holds) this.#pending.push(hold); // They may be too many for the arguments of one call.
    if (!this.#isBusy) void this.#sendAll();
  });
  readonly #pending: PendingHold[] = [];
  #isBusy = false;
  #isClosed = false;

  /**
   * @param openOwn opens a private connection to the master
   * @param slotOf returns the slot of a key. All keys of one command must be in one slot
   */
  constructor(
    openOwn: (onEnd: () => void) => OwnConnection | undefined,
    replicas: number,
    slotOf: (key: string) => number,
    clock: Clock,
  ) {
    this.#clock = clock;
    this.#openOwn = openOwn;
    this.#replicas = replicas;
    this.#slotOf = slotOf;
  }

  confirm(request: RenewRequest, isAsking: boolean, timeoutMs: number): Promise<RenewReply> {
    return new Promise((resolve) => {
      const cancel = this.#clock.afterInBackground(timeoutMs, () => resolve(tooLate()));
      const settle = (reply: RenewReply): void => {
        cancel();
        resolve(reply);
      };
      this.#arriving.add({ request, isAsking, dueAt: this.#clock.now() + timeoutMs, settle });
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#disconnect();
  }

  async #sendAll(): Promise<void> {
    this.#isBusy = true;
    while (this.#pending.length > 0) await this.#send(this.#pending.splice(0, MOST_AT_ONCE));
    this.#isBusy = false;
  }

  async #send(some: readonly PendingHold[]): Promise<void> {
    if (this.#isClosed) {
      for (const { settle } of some) settle(new Error("the store is closed"));
      return;
    }
    const batch = some.filter((hold) => this.#leftMs(hold) >= LEAST_MS);
    for (const hold of some) if (!batch.includes(hold)) hold.settle(tooLate());
    try {
      // If the server did not run a command, because it does not have the script, the command is sent once more with the source of the
      // script.
      const unknown = await this.#sendBatch(batch);
      const rest = await this.#sendBatch(unknown.filter((hold) => this.#leftMs(hold) >= LEAST_MS));
      for (const { settle } of rest) settle(new Error("Redis does not have the script in its cache"));
    } catch (error) {
      this.#disconnect();
      for (const { settle } of batch) settle(translateError(error));
    }
  }

  #leftMs({ dueAt }: PendingHold): number {
    return dueAt - this.#clock.now();
  }

  /** Returns the requests that the server did not run, because it does not have the script. */
  async #sendBatch(batch: readonly PendingHold[]): Promise<readonly PendingHold[]> {
    if (batch.length === 0) return [];
    const groups = this.#groupBySlot(batch);
    const replies = await this.#exec(groups, Math.max(...batch.map((hold) => this.#leftMs(hold))));
    const count = replies.pop() ?? TOO_FEW;
    const fault = count instanceof Error ? translateError(count) : this.#tooFew(Number(count));
    return groups.flatMap((group, index) => {
      const reply = replies[index] ?? TOO_FEW;
      if (isUnknownScript(reply)) return group;
      settleAll(group, reply, fault);
      return [];
    });
  }

  #tooFew(count: number): Error | undefined {
    if (count >= this.#replicas) return undefined;
    return new Error(`${count} of ${this.#replicas} replicas confirmed the lock in time`);
  }

  /** Groups the requests that may go in one command. */
  #groupBySlot(batch: readonly PendingHold[]): readonly (readonly PendingHold[])[] {
    const groups = new Map<unknown, PendingHold[]>();
    for (const hold of batch) {
      const groupKey = hold.isAsking ? hold : this.#slotOf(hold.request.key);
      const group = groups.get(groupKey);
      if (group === undefined) groups.set(groupKey, [hold]);
      else group.push(hold);
    }
    return [...groups.values()];
  }

  /** Returns the reply to each group, and the reply to WAIT at the end. */
  async #exec(groups: readonly (readonly PendingHold[])[], leftMs: number): Promise<unknown[]> {
    if (this.#isClosed) throw new Error("the store is closed");
    const connection = (this.#connection ??= this.#open());
    const commands: Command[] = [];
    for (const group of groups) {
      if (group[0]?.isAsking === true) commands.push(ASKING);
      const requests = group.map(({ request }) => request);
      commands.push({
        name: connection.isNew ? "eval" : "evalsha",
        script: CONFIRM,
        keys: requests.map(({ key }) => key),
        args: [idsOf(requests), ...lockTimesOf(requests)],
      });
    }
    const waitMs = Math.ceil(Math.max(leftMs - WAIT_IS_LATE_MS, leftMs / 2));
    commands.push({ name: "wait", keys: [], args: [this.#replicas, waitMs] });
    let cancel = (): void => {};
    const timeIsUp = new Promise<never>((_, reject) => {
      cancel = this.#clock.afterInBackground(leftMs, () => reject(tooLate()));
    });
    try {
      const replies = await Promise.race([connection.own.exec(commands), timeIsUp]);
      connection.isNew = replies.some(isUnknownScript);
      return replies.filter((_, index) => commands[index] !== ASKING);
    } finally {
      cancel();
    }
  }

  #open(): Connection {
    const own = this.#openOwn(() => {
      if (this.#connection === connection) this.#connection = undefined;
    });
    if (own === undefined) throw new Error("the client opened no connection");
    const connection: Connection = { own, isNew: true };
    return connection;
  }

  #disconnect(): void {
    this.#connection?.own.close();
    this.#connection = undefined;
  }
}

/** @param fault why the replicas may not have the hold */
function settleAll(group: readonly PendingHold[], reply: unknown, fault: Error | undefined): void {
  const failure = reply instanceof Error ? reply : Array.isArray(reply) ? undefined : TOO_FEW;
  group.forEach(({ settle }, index) => {
    if (failure !== undefined) return settle(failure);
    const renewal = renewReply(listOf(reply)[index]);
    settle(renewal instanceof Error || !renewal.renewed ? renewal : (fault ?? renewal));
  });
}

function tooLate(): Error {
  return new Error("the replicas did not answer in time");
}
