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
export interface CarriedOut {
  readonly process: number;
  readonly at: number;
  readonly command: Command;
  readonly reply: unknown;
}

/** A command, as plain data. */
export type Command =
  | { readonly name: "take"; readonly request: AcquireRequest }
  | { readonly name: "place"; readonly request: EnqueueRequest }
  | { readonly name: "renew"; readonly requests: readonly RenewRequest[] }
  | { readonly name: "drop"; readonly request: ReleaseRequest }
  | { readonly name: "look"; readonly keys: readonly string[] }
  | { readonly name: "leave"; readonly key: string; readonly place: string }
  | { readonly name: "next"; readonly held: ReleaseRequest; readonly request: EnqueueRequest }
  | { readonly name: "lose everything" }
  | { readonly name: "revoke"; readonly key: string };

/** Reports to the world what a process sends and receives. */
export interface WireListener {
  onCarriedOut(done: CarriedOut): void;
  onNotDropped(key: string, requestId: string): void;
  onAsk(requestId: string): void;
  onGiveUp(requestId: string): void;
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
    server.listen(AsyncResource.bind((place: string) => this.#hint(place)));
  }

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    this.#listener.onAsk(request.requestId);
    return this.#carry({ name: "take", request }, () => this.#server.take(request));
  }

  enqueue(request: EnqueueRequest): Promise<AcquireReply> {
    this.#listener.onAsk(request.requestId);
    return this.#carry({ name: "place", request }, () => this.#server.place(request));
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
    this.#listener.onGiveUp(request.requestId);
    return this.#carry({ name: "drop", request }, () => this.#server.drop(request));
  }

  #hears({ key, requestId }: ReleaseRequest, reply: ReleaseReply): void {
    if (!reply.released) this.#listener.onNotDropped(key, requestId);
  }

  async releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    this.#listener.onGiveUp(held.requestId);
    this.#listener.onAsk(request.requestId);
    const reply = await this.#carry({ name: "next", held, request }, () => this.#server.next(held, request));
    if (!reply.released) this.#listener.onNotDropped(held.key, held.requestId);
    return reply;
  }

  peek(keys: readonly string[]): Promise<readonly (string | Error | undefined)[]> {
    return this.#carry({ name: "look", keys }, () => this.#server.look(keys));
  }

  dequeue(key: string, place: string): Promise<void> {
    return this.#carry({ name: "leave", key, place }, () => this.#server.leave(key, place));
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
      this.#listener.onCarriedOut({ process: this.#number, at, command, reply });
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

  #hint(place: string): void {
    if (Number.parseInt(place.slice(0, 12), 16) !== this.#number) return; // Only its own process listens to it.
    this.#bringBack(`the hint for ${shortened(place)}`, () => {
      for (const listener of this.#listeners) listener.onWakeUp(place);
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
    case "take":
      return `take ${shortened(command.request.requestId)}`;
    case "place":
      return `place ${shortened(command.request.requestId)} at ${shortened(command.request.ticket)}`;
    case "renew":
      return `renew ${command.requests.map(({ requestId }) => shortened(requestId)).join(" ")}`;
    case "drop":
      return `drop ${shortened(command.request.requestId)}`;
    case "look":
      return `look`;
    case "leave":
      return `leave ${shortened(command.place)}`;
    case "lose everything":
    case "revoke":
      return command.name;
    default:
      return `next ${shortened(command.held.requestId)} to ${shortened(command.request.requestId)}`;
  }
}

function unexpected(): Promise<never> {
  return Promise.reject(new Error("Expected no command for people"));
}

const NO_ADMIN: StoreAdmin = { inspect: unexpected, revoke: unexpected, announce: unexpected };
