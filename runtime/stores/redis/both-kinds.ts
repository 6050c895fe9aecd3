import type {
  ReleaseReply,
  ReleaseRequest,
  Inspection,
  EnqueueRequest,
  RenewReply,
  RenewRequest,
  Store,
  StoreAdmin,
  StoreBatch,
  StoreQueue,
  AcquireReply,
  AcquireRequest,
} from "../port";
import { isShared } from "../value";
import type { Holding } from "./holding";
import { onlyOne } from "./many";
import type { Queueing } from "./queueing";
import { TOO_FEW } from "./replies";
import type { Sharing } from "./sharing";

type RoutedMethods = Pick<Store, "acquire" | "renew" | "release"> &
  Pick<StoreQueue, "enqueue"> &
  Pick<StoreAdmin, "inspect" | "revoke"> &
  Omit<StoreBatch, "splitsMany">;

/**
 * Routes each request to the code for its kind of lock: held alone, or shared. A request that does not name its kind is first sent as a
 * request for a lock that is held alone. If the key turns out to be shared, the request is sent again as one for a shared lock.
 */
export class BothKinds implements RoutedMethods {
  readonly #holding: Holding;
  readonly #queueing: Queueing;
  readonly #sharing: Sharing;

  constructor(holding: Holding, queueing: Queueing, sharing: Sharing) {
    this.#holding = holding;
    this.#queueing = queueing;
    this.#sharing = sharing;
  }

  async acquire(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply> {
    if (!isToShare(request)) return await this.#holding.acquire(request, timeoutMs);
    return await onlyOne(this.#sharing.acquireMany([request], timeoutMs));
  }

  acquireMany(
    requests: readonly AcquireRequest[],
    timeoutMs: number,
  ): Promise<readonly (AcquireReply | Error)[]> {
    return eachKind(
      requests,
      (alone) => this.#holding.acquireMany(alone, timeoutMs),
      (shared) => this.#sharing.acquireMany(shared, timeoutMs),
    );
  }

  async enqueue(request: EnqueueRequest, timeoutMs: number): Promise<AcquireReply> {
    if (!isToShare(request)) return await this.#queueing.enqueue(request, timeoutMs);
    return await onlyOne(this.#sharing.enqueueMany([request], timeoutMs));
  }

  enqueueMany(
    requests: readonly EnqueueRequest[],
    timeoutMs: number,
  ): Promise<readonly (AcquireReply | Error)[]> {
    return eachKind(
      requests,
      (alone) => this.#queueing.enqueueMany(alone, timeoutMs),
      (shared) => this.#sharing.enqueueMany(shared, timeoutMs),
    );
  }

  async renew(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    const replies = await eachKind(
      requests,
      (alone) => this.#holding.renew(alone, timeoutMs),
      (shared) => this.#sharing.renewMany(shared, timeoutMs),
    );
    return await this.#resendShared(requests, replies, isFoundShared, (shared) =>
      this.#sharing.renewMany(shared, timeoutMs),
    );
  }

  async release(request: ReleaseRequest, timeoutMs: number): Promise<ReleaseReply> {
    if (!isToShare(request)) {
      const reply = await this.#holding.release(request, timeoutMs);
      if (!isFoundShared(reply)) return reply;
    }
    return await onlyOne(this.#sharing.releaseMany([request], timeoutMs));
  }

  async releaseMany(
    requests: readonly ReleaseRequest[],
    timeoutMs: number,
  ): Promise<readonly (ReleaseReply | Error)[]> {
    const replies = await eachKind(
      requests,
      (alone) => this.#holding.releaseMany(alone, timeoutMs),
      (shared) => this.#sharing.releaseMany(shared, timeoutMs),
    );
    return await this.#resendShared(requests, replies, isFoundShared, (shared) =>
      this.#sharing.releaseMany(shared, timeoutMs),
    );
  }

  async revoke(request: ReleaseRequest, timeoutMs: number): Promise<boolean> {
    const reply = await this.#holding.revoke(request, timeoutMs);
    return reply === "shared" ? await this.#sharing.revoke(request, timeoutMs) : reply;
  }

  async inspect(key: string, timeoutMs: number): Promise<Inspection> {
    const inspection = await this.#holding.inspect(key, timeoutMs);
    const [first] = inspection.holds;
    if (first === undefined || !isShared(first.value)) return inspection;
    return { ...inspection, holds: await this.#sharing.inspect(key, timeoutMs) };
  }

  /** Sends the requests again whose key turned out to be shared, if they did not say so. */
  async #resendShared<Request extends ReleaseRequest, Reply>(
    requests: readonly Request[],
    replies: readonly (Reply | Error)[],
    isFound: (reply: Reply | Error) => boolean,
    ask: (shared: readonly Request[]) => Promise<readonly (Reply | Error)[]>,
  ): Promise<readonly (Reply | Error)[]> {
    if (!replies.some(isFound)) return replies;
    const shared = requests.filter((request, index) => {
      const reply = replies[index];
      return !isToShare(request) && reply !== undefined && isFound(reply);
    });
    if (shared.length === 0) return replies;
    const sharedReplies = await ask(shared);
    const newReplies = new Map(shared.map((request, index) => [request, sharedReplies[index] ?? TOO_FEW]));
    return requests.map((request, index) => newReplies.get(request) ?? replies[index] ?? TOO_FEW);
  }
}

function isToShare({ permits = 1 }: { readonly permits?: number }): boolean {
  return permits > 1;
}

function isFoundShared(reply: ReleaseReply | RenewReply | Error): boolean {
  return "holder" in reply && reply.holder !== undefined && isShared(reply.holder);
}

/** Splits the requests by kind. If one kind fails, the replies of the other kind still count. */
async function eachKind<Request extends { readonly permits?: number }, Reply>(
  requests: readonly Request[],
  askAlone: (some: readonly Request[]) => Promise<readonly (Reply | Error)[]>,
  askShared: (some: readonly Request[]) => Promise<readonly (Reply | Error)[]>,
): Promise<readonly (Reply | Error)[]> {
  const shared = requests.filter(isToShare);
  if (shared.length === 0) return await askAlone(requests);
  if (shared.length === requests.length) return await askShared(requests);
  const alone = requests.filter((request) => !isToShare(request));
  const failed =
    (some: readonly Request[]) =>
    (error: Error): readonly Error[] =>
      some.map(() => error);
  const [aloneReplies, sharedReplies] = await Promise.all([
    askAlone(alone).catch(failed(alone)),
    askShared(shared).catch(failed(shared)),
  ]);
  const replies = new Map<Request, Reply | Error>();
  alone.forEach((request, index) => replies.set(request, aloneReplies[index] ?? TOO_FEW));
  shared.forEach((request, index) => replies.set(request, sharedReplies[index] ?? TOO_FEW));
  return requests.map((request) => replies.get(request) ?? TOO_FEW);
}
