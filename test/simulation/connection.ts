import { AsyncResource } from "node:async_hooks";
import type {
  ReleaseReply,
  ReleaseRequest,
  ReleaseAndEnqueueReply,
  NotReleased,
  EnqueueRequest,
  RenewReply,
  RenewRequest,
  Store,
  StoreBatch,
  StoreQueue,
  StoreListener,
  AcquireReply,
  AcquireRequest,
} from "../../runtime/stores/port";
import type { SeededRandom } from "../support/seeded-random";
import { belongsToNobody } from "./contexts";
import { Refusals, type ProcessObserver } from "./process-observer";
import type { ProcessClock } from "./process-clock";
import type { SimulatedServer } from "./server";
import type { Weather } from "./weather";
import type { WorldTime } from "./world-server";

/** One TCP connection, from its beginning to its end. */
interface Wire {
  isBroken: boolean;
  lastArrival: { there: number; back: number };
  /** The commands in flight to the server. */
  readonly underWay: Set<() => void>;
  /** Called when the connection ends. */
  readonly unanswered: Set<() => void>;
  /** Replies that have arrived, and that the process reads together with the next one. */
  unread: (() => void)[];
  onTheWayBack: number;
}

/** The result of a command whose connection ended before the reply. */
const BROKEN = Symbol("broken");

/** The largest delay of a duplicate command. */
const LATEST_DUPLICATE_MS = 6_000;

/**
 * The way of one process to the server, over one connection or two. Its client is refused, redirected, and asked for scripts.
 * It resends unanswered commands, or does not. No order of messages is guaranteed.
 */
export class Connection implements Store, StoreQueue, StoreBatch {
  readonly queue: StoreQueue = this;
  readonly batch: StoreBatch = this;
  readonly #world: WorldTime;
  readonly #random: SeededRandom;
  readonly #process: ProcessClock;
  readonly #server: SimulatedServer;
  readonly #weather: () => Weather;
  readonly #observer: ProcessObserver;
  /** Whether the client queues commands while it is not connected, and resends them, as a user's own client may. */
  readonly #resends: boolean;
  /** Whether a refused command fails immediately, as with a client that is not connected. */
  readonly #refusesAtOnce: boolean;
  readonly #refusals = new Refusals();
  readonly #listeners = new Set<StoreListener>();
  /** The context of wake-ups: that of the first command that needed them, which opened their connection. */
  #inbox: AsyncResource | undefined;
  #wires: Wire[];
  /** Resolves when there is a connection again. */
  #reconnected: Promise<void> | undefined;
  #breaks = 0;

  constructor(
    world: WorldTime,
    random: SeededRandom,
    process: ProcessClock,
    server: SimulatedServer,
    weather: () => Weather,
    observer: ProcessObserver,
  ) {
    this.#world = world;
    this.#random = random;
    this.#process = process;
    this.#server = server;
    this.#weather = weather;
    this.#observer = observer;
    this.#resends = random.happens(0.7);
    const { refused, breaks } = weather();
    this.#refusesAtOnce = (refused > 0 || breaks > 0) && random.happens(0.5);
    this.#wires = this.#newWires();
    server.listen((ticket) => this.#sendWakeUp(ticket));
  }

  // ---- commands ---------------------------------------------------------------------------------------

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    this.#observer.onAcquireSent(request.requestId);
    return this.#took(request, await this.#carry(() => this.#server.acquire(request)));
  }

  async acquireMany(requests: readonly AcquireRequest[]): Promise<readonly (AcquireReply | Error)[]> {
    for (const { requestId } of requests) this.#observer.onAcquireSent(requestId);
    const replies = await this.#carry(() => oneByOne(requests, (request) => this.#server.acquire(request)));
    return requests.map((request, index) => this.#took(request, replies[index] ?? NOTHING));
  }

  async enqueue(request: EnqueueRequest): Promise<AcquireReply> {
    this.#inbox ??= new AsyncResource("inbox");
    this.#observer.onAcquireSent(request.requestId);
    return this.#took(request, await this.#carry(() => this.#server.enqueue(request)));
  }

  async enqueueMany(requests: readonly EnqueueRequest[]): Promise<readonly (AcquireReply | Error)[]> {
    this.#inbox ??= new AsyncResource("inbox");
    for (const { requestId } of requests) this.#observer.onAcquireSent(requestId);
    const replies = await this.#carry(() => oneByOne(requests, (request) => this.#server.enqueue(request)));
    return requests.map((request, index) => this.#took(request, replies[index] ?? NOTHING));
  }

  #took({ requestId }: AcquireRequest, reply: AcquireReply): AcquireReply {
    if (reply.acquired) this.#observer.onAcquired(requestId);
    return reply;
  }

  dequeue(key: string, ticket: string): Promise<void> {
    return this.#carry(() => this.#server.dequeue(key, ticket));
  }

  renew(requests: readonly RenewRequest[]): Promise<readonly RenewReply[]> {
    return this.#carry(() => this.#server.renew(requests));
  }

  peek(keys: readonly string[]): Promise<readonly (string | Error | undefined)[]> {
    return this.#carry(() => this.#server.peek(keys));
  }

  async release(request: ReleaseRequest): Promise<ReleaseReply> {
    this.#observer.onReleaseSent(request.requestId);
    const breaksBefore = this.#breaks;
    const [reply] = await this.#carry(async () => [await this.#server.release(request)], mayBeSecond);
    return this.#observed(request, sure(reply ?? NO_REPLY, this.#breaks === breaksBefore));
  }

  async releaseMany(requests: readonly ReleaseRequest[]): Promise<readonly (ReleaseReply | Error)[]> {
    for (const { requestId } of requests) this.#observer.onReleaseSent(requestId);
    const breaksBefore = this.#breaks;
    const replies = await this.#carry(
      () => oneByOne(requests, (request) => this.#server.release(request)),
      mayBeSecond,
    );
    return requests.map((request, index) => {
      try {
        return this.#observed(request, sure(replies[index] ?? NO_REPLY, this.#breaks === breaksBefore));
      } catch (error) {
        return error instanceof Error ? error : NO_REPLY;
      }
    });
  }

  async releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    this.#observer.onReleaseSent(held.requestId);
    this.#observer.onAcquireSent(request.requestId);
    const breaksBefore = this.#breaks;
    const [reply] = await this.#carry(
      async () => [await this.#server.releaseAndEnqueue(held, request)],
      mayBeSecond,
    );
    return this.#observed(held, sure(reply ?? NO_REPLY, this.#breaks === breaksBefore));
  }

  #observed<Reply extends { readonly released: boolean }>(
    { key, requestId }: ReleaseRequest,
    reply: Reply,
  ): Reply {
    if (!reply.released) this.#observer.onNotReleased(key, requestId);
    return reply;
  }

  /** @param afterFirst maps the reply to a duplicate of the command. By default the reply stays the same. */
  async #carry<Reply>(
    send: () => Promise<Reply>,
    afterFirst: (reply: Reply) => Reply = (reply) => reply,
  ): Promise<Reply> {
    belongsToNobody("a command");
    for (;;) {
      if (this.#reconnected !== undefined && !this.#resends) await this.#refuse();
      while (this.#reconnected !== undefined) await this.#reconnected;
      if (this.#random.happens(this.#weather().refused)) await this.#refuse();
      // If the server does not know the script, or redirects the command, it arrives a round trip later.
      if (this.#random.happens(this.#weather().detours)) {
        await this.#exchange(async () => undefined, keep);
        continue;
      }
      const reply = await this.#exchange(send, afterFirst);
      if (reply !== BROKEN) return reply;
      if (!this.#resends) throw new Error("the connection broke");
    }
  }

  async #refuse(): Promise<never> {
    if (!this.#refusesAtOnce) {
      await new Promise<void>((resolve) => {
        this.#process.after(this.#random.next() * this.#weather().latencyMs, resolve);
      });
    } else if (this.#refusals.isSpinning(this.#world.now())) {
      this.#observer.onSpinning();
      await new Promise(() => {}); // Otherwise this tick would never end.
    }
    throw new Error("refused");
  }

  #exchange<Reply>(
    send: () => Promise<Reply>,
    afterFirst: (reply: Reply) => Reply,
  ): Promise<Reply | typeof BROKEN> {
    const wire = this.#anyWire();
    const { lost, replyLost, duplicated } = this.#weather();
    const [isLost, isReplyLost] = [this.#random.happens(lost), this.#random.happens(replyLost)];
    return new Promise((resolve, reject) => {
      const end = (): void => resolve(BROKEN);
      // A client notices only losses that come with the end of its connection.
      if (!isLost && !isReplyLost) wire.unanswered.add(end);
      const answer = (settle: () => void): void => {
        if (wire.isBroken || isReplyLost) return;
        this.#bringBack(wire, () => {
          wire.unanswered.delete(end);
          settle();
          this.#observer.onDelivered();
        });
      };
      const carryOut = (isHeard: boolean, read: (reply: Reply) => Reply): void => {
        this.#server.receive(() => {
          if (this.#server.isDown) return;
          send().then(
            (reply) => isHeard && answer(() => settleWith(reply, read, resolve, reject)),
            (error: unknown) => isHeard && answer(() => reject(error)),
          );
        });
      };
      const arrive = (): void => {
        if (!wire.underWay.delete(arrive)) return;
        if (!this.#random.happens(duplicated)) return carryOut(true, keep);
        // The command arrives twice, and the process gets either the first reply or the second.
        const isFirstHeard = this.#random.happens(0.5);
        const laterMs = this.#random.oneOf(0, this.#weather().latencyMs, LATEST_DUPLICATE_MS);
        carryOut(isFirstHeard, keep);
        this.#world.after(this.#random.next() * laterMs, () => carryOut(!isFirstHeard, afterFirst));
      };
      if (isLost || wire.isBroken) return;
      wire.underWay.add(arrive);
      this.#travel(wire, "there", arrive);
    });
  }

  /** A process may read several replies together. */
  #bringBack(wire: Wire, deliver: () => void): void {
    wire.onTheWayBack += 1;
    this.#travel(wire, "back", () => {
      wire.onTheWayBack -= 1;
      if (wire.isBroken) return;
      wire.unread.push(deliver);
      if (wire.onTheWayBack > 0 && this.#random.happens(this.#weather().readTogether)) return;
      const read = wire.unread.splice(0);
      this.#process.arrive(() => {
        if (!wire.isBroken) for (const deliverReply of read) deliverReply();
      });
    });
  }

  #travel(wire: Wire, way: "there" | "back", arrive: () => void): void {
    const { latencyMs, overtaking } = this.#weather();
    const now = this.#world.now();
    const arrival = now + this.#random.next() * latencyMs;
    // With overtaking, a command may also overtake others if its connection breaks.
    const inOrder = overtaking ? arrival : Math.max(arrival, wire.lastArrival[way]);
    wire.lastArrival[way] = inOrder;
    this.#world.after(inOrder - now, arrive);
  }

  // ---- wake-ups ---------------------------------------------------------------------------------------

  listen(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #sendWakeUp(ticket: string | undefined): void {
    const { wakeUpLost, latencyMs } = this.#weather();
    if (this.#process.isDead || this.#wires[0]?.isBroken === true || this.#random.happens(wakeUpLost)) return;
    const wakeUp = (): void => this.#wakeUp(ticket);
    const deliver = (): void => this.#process.arrive(this.#inbox?.bind(wakeUp) ?? wakeUp);
    this.#world.after(this.#random.next() * latencyMs, deliver);
    if (this.#random.happens(wakeUpLost / 4)) deliver(); // A duplicate, out of order.
  }

  #wakeUp(ticket: string | undefined): void {
    for (const listener of this.#listeners) listener.onWakeUp(ticket);
  }

  // ---- breaks -----------------------------------------------------------------------------------------

  /** Ends the connection. Some of the first commands in flight still arrive. */
  break(): void {
    const wires = this.#wires;
    if (wires.some(({ isBroken }) => isBroken)) return;
    for (const wire of wires) this.#cut(wire);
    this.#process.arrive(() => this.#reconnect(wires));
  }

  #cut(wire: Wire): void {
    wire.isBroken = true;
    if (this.#server.isDown) {
      wire.underWay.clear();
    } else if (!this.#weather().overtaking) {
      const underWay = [...wire.underWay];
      const arriving = this.#random.below(underWay.length + 1);
      for (const arrive of underWay.slice(arriving)) wire.underWay.delete(arrive);
      for (const arrive of underWay.slice(0, arriving)) this.#world.after(0, arrive);
    }
  }

  #reconnect(broken: readonly Wire[]): void {
    this.#breaks += 1;
    this.#reconnected = new Promise((resolve) => {
      const attempt = (): void => {
        this.#process.after(10 + this.#random.below(200), () => {
          if (this.#server.isDown) return attempt();
          this.#wires = this.#newWires();
          this.#reconnected = undefined;
          resolve();
          for (const listener of this.#listeners) listener.onReconnect();
          // Messages that were published meanwhile are lost, so all waiters check again.
          this.#process.after(this.#weather().latencyMs, () => this.#wakeUp(undefined));
        });
      };
      attempt();
    });
    for (const { unanswered } of broken) for (const end of unanswered) end();
  }

  #newWires(): Wire[] {
    return Array.from({ length: this.#weather().connections }, newWire);
  }

  #anyWire(): Wire {
    const [first = newWire(), ...others] = this.#wires;
    return others.length === 0 ? first : this.#random.oneOf(first, ...others);
  }

  async close(): Promise<void> {}
}

const NOTHING: AcquireReply = { acquired: false, holder: undefined, freeInMs: undefined };
const NO_REPLY = new Error("no reply");

function newWire(): Wire {
  return {
    isBroken: false,
    lastArrival: { there: 0, back: 0 },
    underWay: new Set(),
    unanswered: new Set(),
    unread: [],
    onTheWayBack: 0,
  };
}

function keep<Reply>(reply: Reply): Reply {
  return reply;
}

/** One command may name the same key several times, so the effect of each request is noted before the next. */
async function oneByOne<Request, Reply>(
  requests: readonly Request[],
  carryOut: (request: Request) => Promise<Reply>,
): Promise<Reply[]> {
  const replies: Reply[] = [];
  for (const request of requests) replies.push(await carryOut(request));
  return replies;
}

function settleWith<Reply>(
  reply: Reply,
  read: (reply: Reply) => Reply,
  resolve: (reply: Reply) => void,
  reject: (error: unknown) => void,
): void {
  try {
    resolve(read(reply));
  } catch (error) {
    reject(error);
  }
}

/** If a command was sent twice, the first one may have released the hold. */
function mayBeSecond<Replies extends readonly { readonly released: boolean }[]>(replies: Replies): Replies {
  if (replies.every(({ released }) => released)) return replies;
  throw new Error("it was sent twice, and the first may have done it");
}

/** Trusts a failed release only if the connection did not break, as the Redis store does. */
function sure<Reply extends { readonly released: boolean }>(
  reply: Reply | Error,
  isUnbroken: boolean,
): Reply {
  if (reply instanceof Error) throw reply;
  if (reply.released || isUnbroken) return reply;
  throw new Error("the connection broke under it, and the first may have done it");
}
