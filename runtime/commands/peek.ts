import { asError } from "../base/errors";
import type { Store } from "../stores/port";
import { peekReply, repliesIn } from "../stores/replies";
import type { InFlight } from "./in-flight";

/**
 * Returns the values of keys, in order, and `undefined` for a free key. Never rejects: if the store fails, each value is its error.
 */
export async function peekMany(
  store: Store,
  inFlight: InFlight,
  keys: readonly string[],
): Promise<readonly (string | Error | undefined)[]> {
  try {
    const send = (timeoutMs: number): Promise<unknown> => store.peek(keys, timeoutMs);
    const values = await inFlight.ask(send, (reply) => repliesIn(reply, keys.length));
    return values.map(peekReply);
  } catch (error) {
    const failure = asError(error);
    return keys.map(() => failure);
  }
}
