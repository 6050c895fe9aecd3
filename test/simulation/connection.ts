import type {
  AcquireReply,
  AcquireRequest,
  Released,
  ReleaseRequest,
  RenewReply,
  RenewRequest,
  Store,
} from "../../runtime/store";
import type { SeededRandom } from "../support/seeded-random";
import type { VirtualClock } from "../support/virtual-clock";
import type { ProcessClock } from "./process-clock";
import type { SimulatedServer } from "./server";
import type { Weather } from "./weather";

/** One TCP connection, from its beginning to its end. */
interface Wire {
  isBroken: boolean;
  lastArrival: { there: number; back: number };
  /** What is on its way to the server. */
  readonly underWay: Set<() => void>;
  /** Told that the connection is no more. */
  readonly unanswered: Set<() => void>;
}

/** What came of a command when its connection ended before the reply. */
const BROKEN = Symbol("broken");

/**
 * How one process reaches the server: as a client does that holds commands back while it is not connected, and
 * sends those again that were not answered when the connection broke.
 */
export class Connection implements Store {
  readonly #world: VirtualClock;
  readonly #random: SeededRandom;
  readonly #process: ProcessClock;
  readonly #server: SimulatedServer;
  readonly #weather: () => Weather;
  readonly #resends: boolean;
  readonly #listeners = new Set<(requestId: string | undefined) => void>();
  readonly #grants = new Map<string, { readonly requestId: string; readonly at: number }>();
  #wire = newWire();
  /** Resolves when there is a connection again. */
  #reconnected: Promise<void> | undefined;
  #breaks = 0;

  constructor(
    world: VirtualClock,
    random: SeededRandom,
    process: ProcessClock,
    server: SimulatedServer,
    weather: () => Weather,
  ) {
    this.#world = world;
    this.#random = random;
    this.#process = process;
    this.#server = server;
    this.#weather = weather;
    this.#resends = random.happens(0.7);
    server.listen((requestId) => this.#hint(requestId));
  }

  // ---- commands ---------------------------------------------------------------------------------------

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    return this.#noted(request, await this.#carry(() => this.#server.acquire(request)));
  }

  async acquireMany(requests: readonly AcquireRequest[]): Promise<AcquireReply[]> {
    const replies = await this.#carry(() =>
      Promise.all(requests.map((request) => this.#server.acquire(request))),
    );
    requests.forEach((request, index) => {
      const reply = replies[index];
      if (reply !== undefined) this.#noted(request, reply);
    });
    return replies;
  }

  async wait(request: AcquireRequest): Promise<AcquireReply> {
    return this.#noted(request, await this.#carry(() => this.#server.wait(request)));
  }

  #noted({ key, requestId }: AcquireRequest, reply: AcquireReply): AcquireReply {
    if (reply.granted) this.#grants.set(key, { requestId, at: this.#world.now() });
    return reply;
  }

  /** Who was granted the key by a reply that came at this very moment. */
  grantedNow(key: string): string | undefined {
    const grant = this.#grants.get(key);
    return grant?.at === this.#world.now() ? grant.requestId : undefined;
  }

  leave(key: string, requestId: string): Promise<void> {
    return this.#carry(() => this.#server.leave(key, requestId));
  }

  renew(holders: readonly RenewRequest[]): Promise<RenewReply[]> {
    // What is on its way does not change with those who sent it.
    const sent = holders.map(({ key, requestId, lockTimeMs }) => ({ key, requestId, lockTimeMs }));
    return this.#carry(() => this.#server.renew(sent));
  }

  async release(key: string, requestId: string, next?: AcquireRequest): Promise<Released> {
    const breaksBefore = this.#breaks;
    const released = this.#sure(
      await this.#carry(() => this.#server.release(key, requestId, next)),
      breaksBefore,
    );
    if (released instanceof Error) throw released;
    if (next !== undefined && released.handedOn !== undefined) this.#noted(next, released.handedOn);
    return released;
  }

  async releaseMany(requests: readonly ReleaseRequest[]): Promise<(Released | Error)[]> {
    const breaksBefore = this.#breaks;
    // What is on its way does not change with those who sent it.
    const sent = requests.map(({ key, requestId }) => ({ key, requestId }));
    const replies = await this.#carry(() =>
      Promise.all(sent.map(({ key, requestId }) => this.#server.release(key, requestId))),
    );
    return replies.map((released) => this.#sure(released, breaksBefore));
  }

  /** As the Redis store does: the first of two may have released. */
  #sure(released: Released, breaksBefore: number): Released | Error {
    return released.outcome === "released" || this.#breaks === breaksBefore
      ? released
      : new Error("the connection broke under the release");
  }

  async #carry<Reply>(send: () => Promise<Reply>): Promise<Reply> {
    for (;;) {
      while (this.#reconnected !== undefined) await this.#reconnected;
      if (this.#random.happens(this.#weather().refused)) await this.#refuse();
      const reply = await this.#exchange(send);
      if (reply !== BROKEN) return reply;
      if (!this.#resends) throw new Error("the connection broke");
    }
  }

  async #refuse(): Promise<never> {
    await new Promise<void>((resolve) => {
      this.#process.after(this.#random.next() * this.#weather().latencyMs, resolve);
    });
    throw new Error("refused");
  }

  #exchange<Reply>(send: () => Promise<Reply>): Promise<Reply | typeof BROKEN> {
    const wire = this.#wire;
    const { lost, replyLost } = this.#weather();
    const [isLost, isReplyLost] = [this.#random.happens(lost), this.#random.happens(replyLost)];
    return new Promise((resolve, reject) => {
      const end = (): void => resolve(BROKEN);
      // What is lost alone is lost for good: a client knows only of what it lost together with its connection.
      if (!isLost && !isReplyLost) wire.unanswered.add(end);
      const answer = (settle: () => void): void => {
        if (wire.isBroken || isReplyLost) return;
        this.#travel(wire, "back", () => {
          if (wire.isBroken) return;
          this.#process.arrive(() => {
            wire.unanswered.delete(end);
            settle();
          });
        });
      };
      const arrive = (): void => {
        if (!wire.underWay.delete(arrive)) return;
        this.#server.receive(() => {
          if (this.#server.isDown) return;
          send().then(
            (reply) => answer(() => resolve(reply)),
            (error: unknown) => answer(() => reject(error)),
          );
        });
      };
      if (isLost || wire.isBroken) return;
      wire.underWay.add(arrive);
      this.#travel(wire, "there", arrive);
    });
  }

  #travel(wire: Wire, way: "there" | "back", arrive: () => void): void {
    const { latencyMs, overtaking } = this.#weather();
    const now = this.#world.now();
    const arrival = now + this.#random.next() * latencyMs;
    // Where one may overtake another, a command that is on its way when its connection breaks is no exception.
    const inOrder = overtaking ? arrival : Math.max(arrival, wire.lastArrival[way]);
    wire.lastArrival[way] = inOrder;
    this.#world.after(inOrder - now, arrive);
  }

  // ---- hints ------------------------------------------------------------------------------------------

  listen(onHint: (requestId: string | undefined) => void): () => void {
    this.#listeners.add(onHint);
    return () => this.#listeners.delete(onHint);
  }

  #hint(requestId: string | undefined): void {
    const { hintLost, latencyMs } = this.#weather();
    if (this.#process.isDead || this.#wire.isBroken || this.#random.happens(hintLost)) return;
    const deliver = (): void => this.#process.arrive(() => this.#tell(requestId));
    this.#world.after(this.#random.next() * latencyMs, deliver);
    if (this.#random.happens(hintLost / 4)) deliver(); // Once more, and out of its turn.
  }

  #tell(requestId: string | undefined): void {
    for (const onHint of this.#listeners) onHint(requestId);
  }

  // ---- breaks -----------------------------------------------------------------------------------------

  /** The connection ends: some of what was on its way to the server, from the first on, still arrives. */
  break(): void {
    const wire = this.#wire;
    if (wire.isBroken) return;
    wire.isBroken = true;
    if (this.#server.isDown) {
      wire.underWay.clear();
    } else if (!this.#weather().overtaking) {
      const underWay = [...wire.underWay];
      const arriving = this.#random.below(underWay.length + 1);
      for (const arrive of underWay.slice(0, arriving)) arrive();
      wire.underWay.clear();
    }
    this.#process.arrive(() => this.#reconnect(wire));
  }

  #reconnect(broken: Wire): void {
    this.#breaks += 1;
    this.#reconnected = new Promise((resolve) => {
      const attempt = (): void => {
        this.#process.after(10 + this.#random.below(200), () => {
          if (this.#server.isDown) return attempt();
          this.#wire = newWire();
          this.#reconnected = undefined;
          resolve();
          // What was published while it was down is gone: everybody looks again.
          this.#process.after(this.#weather().latencyMs, () => this.#tell(undefined));
        });
      };
      attempt();
    });
    for (const end of broken.unanswered) end();
  }

  async close(): Promise<void> {}
}

function newWire(): Wire {
  return {
    isBroken: false,
    lastArrival: { there: 0, back: 0 },
    underWay: new Set(),
    unanswered: new Set(),
  };
}
