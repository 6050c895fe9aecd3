import { AsyncResource } from "node:async_hooks";
import type {
  ReleaseReply,
  ReleaseRequest,
  ReleaseAndEnqueueReply,
  NotReleased,
  EnqueueRequest,
  RenewReply,
  RenewRequest,
  StoreAdmin,
  StoreBatch,
  StoreQueue,
  WholeStore,
  StoreListener,
  AcquireReply,
  AcquireRequest,
} from "../../../runtime/stores/port";
import { belongsToNobody } from "../contexts";
import type { ProcessClock } from "../process-clock";
import type { SimulatedServer } from "../server";
import { shortened } from "./names";
import type { Schedule } from "./schedule";

const LATENCY_MS = 1;

/** One command that the server executed. */
export interface Executed {
  readonly process: number;
  readonly at: number;
  readonly command: Command;
  readonly reply: unknown;
}

/** A command, as plain data. */
export type Command =
  | { readonly name: "acquire"; readonly request: AcquireRequest }
  | { readonly name: "enqueue"; readonly request: EnqueueRequest }
  | { readonly name: "renew"; readonly requests: readonly RenewRequest[] }
  | { readonly name: "release"; readonly request: ReleaseRequest }
  | { readonly name: "peek"; readonly keys: readonly string[] }
  | { readonly name: "dequeue"; readonly key: string; readonly ticket: string }
  | { readonly name: "releaseAndEnqueue"; readonly held: ReleaseRequest; readonly request: EnqueueRequest }
  | { readonly name: "lose everything" }
  | { readonly name: "revoke"; readonly key: string };

/** Reports to the world what a process sends and receives. */
export interface WireListener {
  onExecuted(done: Executed): void;
  onNotReleased(key: string, requestId: string): void;
  onAcquireSent(requestId: string): void;
  onReleaseSent(requestId: string): void;
}

/** The network between one process and the server. Each message is an event of the schedule. */
export class Wire implements WholeStore, StoreQueue, StoreBatch {
  readonly queue: StoreQueue = this;
  readonly batch: StoreBatch = this;
  readonly admin: StoreAdmin = NO_ADMIN;
  readonly #schedule: Schedule;
  readonly #number: number;
  readonly #clock: ProcessClock;
  readonly #server: SimulatedServer;
  readonly #listener: WireListener;
  readonly #to: string;
  readonly #listeners = new Set<StoreListener>();

  /** @param to the server, as labels of its messages name it */
  constructor(
    schedule: Schedule,
    number: number,
    clock: ProcessClock,
    server: SimulatedServer,
    listener: WireListener,
    to = "",
  ) {
    this.#schedule = schedule;
    this.#number = number;
    this.#clock = clock;
    this.#server = server;
    this.#listener = listener;
    this.#to = to;
    // A wake-up comes in the context of the connection, not in that of the caller that caused it.
    server.listen(AsyncResource.bind((ticket: string) => this.#sendWakeUp(ticket)));
  }

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    this.#listener.onAcquireSent(request.requestId);
    return this.#carry({ name: "acquire", request }, () => this.#server.acquire(request));
  }

  enqueue(request: EnqueueRequest): Promise<AcquireReply> {
    this.#listener.onAcquireSent(request.requestId);
    return this.#carry({ name: "enqueue", request }, () => this.#server.enqueue(request));
  }

  renew(requests: readonly RenewRequest[]): Promise<readonly RenewReply[]> {
    return this.#carry({ name: "renew", requests }, () => this.#server.renew(requests));
  }

  async release(request: ReleaseRequest): Promise<ReleaseReply> {
    const reply = await this.#drop(request);
    this.#hears(request, reply);
    return reply;
  }

  #drop(request: ReleaseRequest): Promise<ReleaseReply> {
    this.#listener.onReleaseSent(request.requestId);
    return this.#carry({ name: "release", request }, () => this.#server.release(request));
  }

  #hears({ key, requestId }: ReleaseRequest, reply: ReleaseReply): void {
    if (!reply.released) this.#listener.onNotReleased(key, requestId);
  }

  async releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    this.#listener.onReleaseSent(held.requestId);
    this.#listener.onAcquireSent(request.requestId);
    const reply = await this.#carry({ name: "releaseAndEnqueue", held, request }, () =>
      this.#server.releaseAndEnqueue(held, request),
    );
    if (!reply.released) this.#listener.onNotReleased(held.key, held.requestId);
    return reply;
  }

  peek(keys: readonly string[]): Promise<readonly (string | Error | undefined)[]> {
    return this.#carry({ name: "peek", keys }, () => this.#server.peek(keys));
  }

  dequeue(key: string, ticket: string): Promise<void> {
    return this.#carry({ name: "dequeue", key, ticket }, () => this.#server.dequeue(key, ticket));
  }

  // As in Redis, a batch is sent together, executed one by one, and answered together.
  acquireMany(requests: readonly AcquireRequest[]): Promise<readonly AcquireReply[]> {
    return Promise.all(requests.map((request) => this.acquire(request)));
  }

  async releaseMany(requests: readonly ReleaseRequest[]): Promise<readonly ReleaseReply[]> {
    const replies = await Promise.all(requests.map((request) => this.#drop(request)));
    requests.forEach((request, index) => this.#hears(request, replies[index] ?? { released: true }));
    return replies;
  }

  #carry<Reply>(command: Command, send: () => Promise<Reply>): Promise<Reply> {
    belongsToNobody("a command");
    const what = `${this.#number}'s ${describe(command)}${this.#to}`;
    const carryOut = async (): Promise<Reply> => {
      const at = this.#schedule.now();
      const reply = await send();
      this.#listener.onExecuted({ process: this.#number, at, command, reply });
      return reply;
    };
    return new Promise((resolve, reject) => {
      const arrive = (): void => {
        carryOut().then(
          (reply) => this.#bringBack(`the reply to ${what}`, () => resolve(reply)),
          (error: unknown) => this.#bringBack(`the error of ${what}`, () => reject(error)),
        );
      };
      const dueAt = this.#schedule.now() + LATENCY_MS;
      this.#schedule.add("to server", "server", what, dueAt, arrive, () => void carryOut());
    });
  }

  #bringBack(label: string, deliver: () => void): void {
    const dueAt = this.#schedule.now() + LATENCY_MS;
    this.#schedule.add("to process", this.#number, label, dueAt, () => this.#clock.arrive(deliver));
  }

  listen(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #sendWakeUp(ticket: string): void {
    if (Number.parseInt(ticket.slice(0, 12), 16) !== this.#number) return; // Only its own process listens to it.
    this.#bringBack(`the wake-up for ${shortened(ticket)}`, () => {
      for (const listener of this.#listeners) listener.onWakeUp(ticket);
    });
  }

  /** Tells the listeners that the connection is new. */
  reconnected(): void {
    for (const listener of this.#listeners) listener.onReconnect();
  }

  async close(): Promise<void> {}
}

function describe(command: Command): string {
  switch (command.name) {
    case "acquire":
      return `acquire ${shortened(command.request.requestId)}`;
    case "enqueue":
      return `ticket ${shortened(command.request.requestId)} at ${shortened(command.request.ticket)}`;
    case "renew":
      return `renew ${command.requests.map(({ requestId }) => shortened(requestId)).join(" ")}`;
    case "release":
      return `release ${shortened(command.request.requestId)}`;
    case "peek":
      return `peek`;
    case "dequeue":
      return `dequeue ${shortened(command.ticket)}`;
    case "lose everything":
    case "revoke":
      return command.name;
    default:
      return `releaseAndEnqueue ${shortened(command.held.requestId)} to ${shortened(command.request.requestId)}`;
  }
}

function unexpected(): Promise<never> {
  return Promise.reject(new Error("Expected no command for people"));
}

const NO_ADMIN: StoreAdmin = { inspect: unexpected, revoke: unexpected, announce: unexpected };
