import type { Clock } from "../../clock";
import { listenInRoot, runInNextTick } from "../../root-context";
import { MOST_AT_ONCE, type RenewReply, type RenewRequest } from "../port";
import type { Duplicable, OwnConnection } from "./client";
import { Database } from "./database";
import { isUnknownScript, translateError } from "./errors";
import { idsOf, lockTimesOf } from "./many";
import { listOf, renewReply, TOO_FEW } from "./replies";
import { CONFIRM } from "./scripts/confirm";

/** With less time left nothing is sent. */
const LEAST_MS = 5;
/** A server looks ten times a second whose WAIT is over, and what it says then has to be heard in time. */
const WAIT_IS_LATE_MS = 300;

/** What is sent is not sent again, and a connection that has ended is not opened anew: another one is, when it is needed. */
const ONCE = {
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

/** A hold that replicas are to confirm. */
interface Asked {
  readonly request: RenewRequest;
  /** Its slot is on its way to this server. */
  readonly isAsking: boolean;
  readonly dueAt: number;
  readonly settle: (reply: RenewReply) => void;
}

interface Connection {
  readonly redis: OwnConnection;
  readonly database: Database;
  /** Whether the server may not know the script. */
  isNew: boolean;
}

/**
 * Renews holds at one master, which count as renewed once so many of its replicas have them. WAIT blocks its connection,
 * and waits for what was written on it: so there is one for nothing else, over which a renewal goes and then the WAIT. That
 * the same server says that it has the hold matters, too: after a fail-over another one may say that all is well.
 *
 * One batch is on its way at a time; what is asked for meanwhile goes with the next. A batch has no deadline of its own:
 * its WAIT lasts as long as its most patient member listens, and each of the others times out by itself.
 */
export class Confirmer {
  readonly #node: Duplicable;
  readonly #replicas: number;
  readonly #prefix: string;
  readonly #db: number;
  readonly #slotOf: (key: string) => number;
  readonly #clock: Clock;
  #connection: Connection | undefined;
  #pending: Asked[] = [];
  #isBusy = false;
  #isClosed = false;

  /** @param slotOf what must be the same for all keys of one command */
  constructor(
    node: Duplicable,
    replicas: number,
    prefix: string,
    db: number,
    slotOf: (key: string) => number,
    clock: Clock,
  ) {
    this.#clock = clock;
    this.#node = node;
    this.#db = db;
    this.#replicas = replicas;
    this.#prefix = prefix;
    this.#slotOf = slotOf;
  }

  confirm(request: RenewRequest, isAsking: boolean, timeoutMs: number): Promise<RenewReply> {
    return new Promise((resolve) => {
      const cancel = this.#clock.afterInBackground(timeoutMs, () => resolve(tooLate()));
      const settle = (reply: RenewReply): void => {
        cancel();
        resolve(reply);
      };
      this.#pending.push({ request, isAsking, dueAt: this.#clock.now() + timeoutMs, settle });
      if (!this.#isBusy && this.#pending.length === 1) runInNextTick(() => void this.#sendAll());
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

  async #send(some: readonly Asked[]): Promise<void> {
    if (this.#isClosed) {
      for (const { settle } of some) settle(new Error("the store is closed"));
      return;
    }
    const batch = some.filter((asked) => this.#leftMs(asked) >= LEAST_MS);
    for (const asked of some) if (!batch.includes(asked)) asked.settle(tooLate());
    try {
      // What the server did not carry out, because it has forgotten the script, is sent once more with the script itself.
      const unknown = await this.#sendBatch(batch);
      const rest = await this.#sendBatch(unknown.filter((asked) => this.#leftMs(asked) >= LEAST_MS));
      for (const { settle } of rest) settle(new Error("Redis does not have the script in its cache"));
    } catch (error) {
      this.#disconnect();
      for (const { settle } of batch) settle(translateError(error));
    }
  }

  #leftMs({ dueAt }: Asked): number {
    return dueAt - this.#clock.now();
  }

  /** Returns those that the server did not carry out, because it does not know the script. */
  async #sendBatch(batch: readonly Asked[]): Promise<readonly Asked[]> {
    if (batch.length === 0) return [];
    const groups = this.#together(batch);
    const replies = await this.#exec(groups, Math.max(...batch.map((asked) => this.#leftMs(asked))));
    const [waitError, count] = replies.pop() ?? [TOO_FEW, undefined];
    const fault = waitError === null ? this.#tooFew(Number(count)) : translateError(waitError);
    return groups.flatMap((group, index) => {
      const reply = replies[index] ?? ([TOO_FEW, undefined] as const);
      if (isUnknownScript(reply[0])) return group;
      conclude(group, reply, fault);
      return [];
    });
  }

  #tooFew(count: number): Error | undefined {
    if (count >= this.#replicas) return undefined;
    return new Error(`${count} of ${this.#replicas} replicas confirmed the lock in time`);
  }

  /** Those that may go in one command. */
  #together(batch: readonly Asked[]): readonly (readonly Asked[])[] {
    const groups = new Map<unknown, Asked[]>();
    for (const asked of batch) {
      const place = asked.isAsking ? asked : this.#slotOf(asked.request.key);
      const group = groups.get(place);
      if (group === undefined) groups.set(place, [asked]);
      else group.push(asked);
    }
    return [...groups.values()];
  }

  /** The reply to each group, and that to WAIT. */
  async #exec(groups: readonly (readonly Asked[])[], leftMs: number): Promise<PipelineReply[]> {
    if (this.#isClosed) throw new Error("the store is closed");
    const connection = (this.#connection ??= this.#open());
    const { redis, database } = connection;
    const pipeline = redis.pipeline();
    const asking = new Set<number>();
    let sent = 0;
    for (const group of groups) {
      if (group[0]?.isAsking === true) {
        pipeline.call("asking");
        asking.add(sent);
        sent += 1;
      }
      const requests = group.map(({ request }) => request);
      const keys = requests.map(({ key }) => this.#prefix + key);
      const [command, script] = connection.isNew ? ["eval", CONFIRM.source] : ["evalsha", CONFIRM.sha1];
      pipeline.call(command, script, keys.length, ...keys, idsOf(requests), ...lockTimesOf(requests));
      sent += 1;
    }
    pipeline.call("wait", this.#replicas, Math.ceil(Math.max(leftMs - WAIT_IS_LATE_MS, leftMs / 2)));
    let cancel = (): void => {};
    const timeIsUp = new Promise<never>((_, reject) => {
      cancel = this.#clock.afterInBackground(leftMs, () => reject(tooLate()));
    });
    try {
      const replies = await Promise.race([pipeline.exec(), timeIsUp]);
      if (database.fault !== undefined) throw database.fault;
      connection.isNew = replies?.some(([error]) => isUnknownScript(error)) ?? true;
      return (replies ?? []).filter((_, index) => !asking.has(index));
    } finally {
      cancel();
    }
  }

  #open(): Connection {
    const redis = this.#node.duplicate({ ...ONCE, db: this.#db });
    const connection: Connection = { redis, database: new Database(redis), isNew: true };
    listenInRoot(redis, {
      error() {}, // Each command tells its own failure.
      end: () => {
        if (this.#connection === connection) this.#connection = undefined;
      },
    });
    return connection;
  }

  #disconnect(): void {
    this.#connection?.redis.disconnect();
    this.#connection = undefined;
  }
}

type PipelineReply = readonly [error: Error | null, reply: unknown];

/** @param fault why replicas are not known to have what the master has */
function conclude(group: readonly Asked[], [error, reply]: PipelineReply, fault: Error | undefined): void {
  const failure = error ?? (Array.isArray(reply) ? undefined : TOO_FEW);
  group.forEach(({ settle }, index) => {
    if (failure !== undefined) return settle(failure);
    const told = renewReply(listOf(reply)[index]);
    settle(told instanceof Error || !told.renewed ? told : (fault ?? told));
  });
}

function tooLate(): Error {
  return new Error("the replicas did not answer in time");
}
