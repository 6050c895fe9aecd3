import { asError } from "../base/errors";
import type { RenewReply, RenewRequest, Store } from "../stores/port";
import { renewReply, repliesIn } from "../stores/replies";
import type { InFlight } from "./in-flight";

/**
 * Renews holds, and returns a reply for each, in order. Never rejects: if the store fails, each reply is its error.
 *
 * @param timeoutMs the time for the reply, at most the usual timeout
 */
export async function renewMany(
  store: Store,
  inFlight: InFlight,
  requests: readonly RenewRequest[],
  timeoutMs?: number,
): Promise<RenewReply[]> {
  const count = requests.length;
  try {
    const send = (ms: number): Promise<unknown> => store.renew(requests, ms);
    const replies = await inFlight.ask(send, (reply) => repliesIn(reply, count), timeoutMs);
    return requests.map(({ fencing }, index) => orError(() => renewReply(replies[index], fencing)));
  } catch (error) {
    const failure = asError(error);
    return requests.map(() => failure);
  }
}

/** Does the same for one hold. */
export async function renewOne(
  store: Store,
  inFlight: InFlight,
  request: RenewRequest,
  timeoutMs?: number,
): Promise<RenewReply> {
  const [reply = NO_REPLY] = await renewMany(store, inFlight, [request], timeoutMs);
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
