import type { Renewed, RenewReply, RenewRequest, Store } from "../stores/port";
import type { InFlight } from "./in-flight";

/**
 * Renews holds. It never rejects: there is one reply for each, in their order, or the error that the store failed with.
 *
 * @param mostMs never more than the usual time-out
 */
export async function renewMany(
  store: Store,
  inFlight: InFlight,
  requests: readonly RenewRequest[],
  mostMs?: number,
): Promise<RenewReply[]> {
  try {
    const replies: unknown = await inFlight.ask((withinMs) => store.renew(requests, withinMs), mostMs);
    return requests.map((_, index) => replyIn(replies, index));
  } catch (error) {
    const failure = error instanceof Error ? error : new Error("the store failed", { cause: error });
    return requests.map(() => failure);
  }
}

/** The same of one. */
export async function renewOne(
  store: Store,
  inFlight: InFlight,
  request: RenewRequest,
  mostMs?: number,
): Promise<RenewReply> {
  const replies = await renewMany(store, inFlight, [request], mostMs);
  return replyIn(replies, 0);
}

/** The types of a store that somebody wrote may not have been checked. */
function replyIn(replies: unknown, index: number): RenewReply {
  const reply: unknown = Array.isArray(replies) ? replies[index] : undefined;
  return isReply(reply) ? reply : new Error("the store sent no reply for a renewal");
}

function isReply(reply: unknown): reply is RenewReply {
  if (typeof reply !== "object" || reply === null) return false;
  return reply instanceof Error || typeof (reply as Partial<Renewed>).renewed === "boolean";
}
