import { asError } from "../errors";
import type { RenewReply, RenewRequest, Store } from "../stores/port";
import { renewReply, repliesIn } from "../stores/replies";
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
  const count = requests.length;
  try {
    const send = (timeoutMs: number): Promise<unknown> => store.renew(requests, timeoutMs);
    const replies = await inFlight.ask(send, (reply) => repliesIn(reply, count), mostMs);
    return requests.map(({ fencing }, index) => orError(() => renewReply(replies[index], fencing)));
  } catch (error) {
    const failure = asError(error);
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
  const [reply = NO_REPLY] = await renewMany(store, inFlight, [request], mostMs);
  return reply;
}

const NO_REPLY = new Error("the store sent no reply to a renewal");

function orError(read: () => RenewReply): RenewReply {
  try {
    return read();
  } catch (error) {
    return asError(error);
  }
}
