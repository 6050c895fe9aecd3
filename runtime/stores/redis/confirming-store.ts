import { systemClock, type Clock } from "../../clock";
import { LockMisconfiguredError } from "../../errors";
import type {
  AnnounceRequest,
  DropReply,
  DropRequest,
  Inspection,
  NextReply,
  NotDropped,
  PlaceRequest,
  RenewReply,
  RenewRequest,
  Store,
  StoreListener,
  TakeReply,
  TakeRequest,
} from "../port";
import type { RedisClient } from "./client";
import type { Cluster } from "./cluster/by-slot";
import { Replicas } from "./replicas";
import { TOO_FEW } from "./replies";

/** What replicas have to say is late before the whole reply is: those who need none are to hear of theirs in any case. */
const HEARD_IN_TIME = 0.9;
const LEAST_GIVE_BACK_MS = 200;

/** A store over Redis, and what reaches the replicas. */
interface RedisStore extends Store {
  readonly revoke: NonNullable<Store["revoke"]>;
  readonly inspect: NonNullable<Store["inspect"]>;
  readonly announce: NonNullable<Store["announce"]>;
  readonly takeMany: NonNullable<Store["takeMany"]>;
  readonly dropMany: NonNullable<Store["dropMany"]>;
  readonly splitsMany: boolean;
  readonly client: RedisClient;
  readonly cluster: Cluster | undefined;
}

/**
 * Locks in Redis, of which some count only once replicas have them: what was taken is renewed over a connection that
 * waits for the replicas, and so is what is held. Where they are not heard of, the hold is neither believed nor forgotten:
 * the command has failed, and may have taken the key, as if its reply had been lost.
 */
export class ConfirmingStore implements Store {
  readonly confirmsReplicas = true;
  readonly splitsMany: boolean;
  readonly takeMany: NonNullable<Store["takeMany"]>;
  readonly dropMany: NonNullable<Store["dropMany"]>;
  readonly placeMany: Store["placeMany"];
  readonly #store: RedisStore;
  readonly #replicas: Replicas;
  readonly #clock: Clock;

  constructor(store: RedisStore, clock: Clock = systemClock) {
    this.#store = store;
    this.#clock = clock;
    this.#replicas = new Replicas(store.client, store.cluster, clock);
    this.splitsMany = store.splitsMany;
    this.takeMany = store.takeMany;
    this.dropMany = store.dropMany;
    this.placeMany = store.placeMany;
  }

  take(request: TakeRequest, withinMs: number): Promise<TakeReply> {
    if (!wantsReplicas(request)) return this.#store.take(request, withinMs);
    return this.#takeAndConfirm(request, withinMs, () => this.#store.take(request, withinMs));
  }

  place(request: PlaceRequest, withinMs: number): Promise<TakeReply> {
    if (!wantsReplicas(request)) return this.#store.place(request, withinMs);
    return this.#takeAndConfirm(request, withinMs, () => this.#store.place(request, withinMs));
  }

  async #takeAndConfirm(
    request: TakeRequest,
    withinMs: number,
    take: () => Promise<TakeReply>,
  ): Promise<TakeReply> {
    const startedAt = this.#clock.now();
    const reply = await take();
    if (!reply.taken) return reply;
    const leftMs = withinMs - (this.#clock.now() - startedAt);
    const confirmed = await this.#replicas.confirm(request, leftMs, "acquire");
    if (confirmed instanceof LockMisconfiguredError) {
      // Nobody tries again, so nobody would find it.
      await this.#store.drop(request, LEAST_GIVE_BACK_MS).catch(() => {});
    }
    if (confirmed instanceof Error) throw confirmed;
    return confirmed.renewed ? reply : { taken: false, holder: confirmed.holder, freeInMs: undefined };
  }

  async renew(requests: readonly RenewRequest[], withinMs: number): Promise<readonly RenewReply[]> {
    if (!requests.some(wantsReplicas)) return await this.#store.renew(requests, withinMs);
    const plain = requests.filter((request) => !wantsReplicas(request));
    const replies = new Map<RenewRequest, RenewReply>();
    await Promise.all([
      this.#store
        .renew(plain, withinMs)
        .then((told) => plain.forEach((request, index) => replies.set(request, told[index] ?? TOO_FEW))),
      ...requests.filter(wantsReplicas).map(async (request) => {
        const told = await this.#renewAndConfirm(request, withinMs * HEARD_IN_TIME).catch(
          (error: Error) => error,
        );
        replies.set(request, told);
      }),
    ]);
    return requests.map((request) => replies.get(request) ?? TOO_FEW);
  }

  async #renewAndConfirm(request: RenewRequest, withinMs: number): Promise<RenewReply> {
    if (!request.fencing) return await this.#replicas.confirm(request, withinMs, "renew");
    const startedAt = this.#clock.now();
    const [drawn = TOO_FEW] = await this.#store.renew([request], withinMs);
    if (drawn instanceof Error || !drawn.renewed) return drawn;
    const leftMs = withinMs - (this.#clock.now() - startedAt);
    const confirmed = await this.#replicas.confirm(request, leftMs, "renew");
    return confirmed instanceof Error || !confirmed.renewed ? confirmed : drawn;
  }

  drop(request: DropRequest, withinMs: number): Promise<DropReply> {
    return this.#store.drop(request, withinMs);
  }

  /** Whoever is next cannot be given the lock by the command that ends the hold: replicas are asked first. */
  async next(held: DropRequest, request: PlaceRequest, withinMs: number): Promise<NextReply | NotDropped> {
    if (!wantsReplicas(request)) return await this.#store.next(held, request, withinMs);
    const reply = await this.#store.drop(held, withinMs);
    return reply.dropped ? { dropped: true, next: undefined } : reply;
  }

  revoke(request: DropRequest, withinMs: number): Promise<boolean> {
    return this.#store.revoke(request, withinMs);
  }

  look(keys: readonly string[], withinMs: number): Promise<readonly (string | Error | undefined)[]> {
    return this.#store.look(keys, withinMs);
  }

  inspect(key: string, withinMs: number): Promise<Inspection> {
    return this.#store.inspect(key, withinMs);
  }

  announce(request: AnnounceRequest, withinMs: number): Promise<void> {
    return this.#store.announce(request, withinMs);
  }

  leave(key: string, place: string, withinMs: number): Promise<void> {
    return this.#store.leave(key, place, withinMs);
  }

  listen(listener: StoreListener): () => void {
    return this.#store.listen(listener);
  }

  async close(): Promise<void> {
    this.#replicas.close();
    await this.#store.close();
  }
}

function wantsReplicas({ replicas = 0 }: TakeRequest): boolean {
  return replicas > 0;
}
