import { systemClock, type Clock } from "../../base/clock";
import { LockMisconfiguredError } from "../../base/errors";
import type { AcquireReply, AcquireRequest, RenewReply, RenewRequest, Store } from "../port";
import { Replicas } from "./replicas";
import { TOO_FEW } from "./replies";
import type { Server } from "./server";

/**
 * The share of the timeout in which replicas must confirm. Otherwise, requests of the same call that need no replicas would time out, too.
 */
const REPLICA_TIME_SHARE = 0.9;
const RELEASE_TIMEOUT_MS = 200;

/**
 * Holds that count only once replicas have them. A connection that waits for the replicas renews each acquired hold, and does all
 * later renewals. If the replicas do not confirm in time, the command fails as if its reply had been lost. The process does not rely on the
 * hold, but remembers it, because the command may have acquired the key.
 */
export class ReplicatedHolds {
  /** Sends commands that do not wait for replicas. */
  readonly #store: Pick<Store, "release" | "renew">;
  readonly #replicas: Replicas;
  readonly #clock: Clock;

  constructor(store: Pick<Store, "release" | "renew">, server: Server, clock: Clock = systemClock) {
    this.#store = store;
    this.#clock = clock;
    this.#replicas = new Replicas(server.client, server.cluster, clock);
  }

  /**
   * Confirms a hold, if the command acquired it.
   *
   * @param sent the reply to the command, which was just sent
   */
  async confirm(
    request: AcquireRequest,
    sent: Promise<AcquireReply>,
    timeoutMs: number,
  ): Promise<AcquireReply> {
    const sentAt = this.#clock.now();
    const reply = await sent;
    if (!reply.acquired) return reply;
    const leftMs = timeoutMs - (this.#clock.now() - sentAt);
    const confirmed = await this.#replicas.confirm(request, leftMs, "acquire");
    if (confirmed instanceof LockMisconfiguredError) {
      // No caller retries after this error, so nobody else would release the hold.
      await this.#store.release(request, RELEASE_TIMEOUT_MS).catch(() => {});
    }
    if (confirmed instanceof Error) throw confirmed;
    return confirmed.renewed ? reply : { acquired: false, holder: confirmed.holder, freeInMs: undefined };
  }

  /** Renews holds, some of which need no replicas. */
  async renew(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    const plain = requests.filter((request) => !wantsReplicas(request));
    const replies = new Map<RenewRequest, RenewReply>();
    await Promise.all([
      this.#store
        .renew(plain, timeoutMs)
        .then((plainReplies) =>
          plain.forEach((request, index) => replies.set(request, plainReplies[index] ?? TOO_FEW)),
        ),
      ...requests.filter(wantsReplicas).map(async (request) => {
        const reply = await this.#renewOne(request, timeoutMs * REPLICA_TIME_SHARE).catch(
          (error: Error) => error,
        );
        replies.set(request, reply);
      }),
    ]);
    return requests.map((request) => replies.get(request) ?? TOO_FEW);
  }

  async #renewOne(request: RenewRequest, timeoutMs: number): Promise<RenewReply> {
    if (!request.fencing) return await this.#replicas.confirm(request, timeoutMs, "renew");
    const startedAt = this.#clock.now();
    const [drawn = TOO_FEW] = await this.#store.renew([withoutReplicas(request)], timeoutMs);
    if (drawn instanceof Error || !drawn.renewed) return drawn;
    const leftMs = timeoutMs - (this.#clock.now() - startedAt);
    const confirmed = await this.#replicas.confirm(request, leftMs, "renew");
    return confirmed instanceof Error || !confirmed.renewed ? confirmed : drawn;
  }

  close(): void {
    this.#replicas.close();
  }
}

/** Whether the request counts only once replicas have its hold. */
export function wantsReplicas({ replicas = 0 }: AcquireRequest): boolean {
  return replicas > 0;
}

/** Returns the request for the command that acquires or renews the hold before the replicas confirm it. */
export function withoutReplicas<Request extends AcquireRequest>(request: Request): Request {
  return { ...request, replicas: 0 };
}
