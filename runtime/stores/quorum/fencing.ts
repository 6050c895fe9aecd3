import type { AcquireRequest } from "../port";
import { withoutFencing } from "./master";
import { NO_ANSWER, type Masters } from "./masters";

/**
 * Draws a fencing token: the largest that a majority draws while it has the hold. Before anybody sees the token, a majority raises its
 * counters, so that all later tokens are larger.
 *
 * @throws if there is no majority for one of the two steps
 */
export async function drawToken(
  masters: Masters,
  request: AcquireRequest,
  patienceMs: number,
): Promise<number> {
  let token = 0;
  await masters.poll(patienceMs, async ({ store }) => {
    const [reply = NO_ANSWER] = await store.renew(
      [{ ...withoutFencing(request), fencing: true }],
      patienceMs,
    );
    if (reply instanceof Error) throw reply;
    if (reply.renewed) token = Math.max(token, reply.fencingToken ?? 0);
    return reply.renewed;
  });
  const drawn = token;
  await masters.poll(patienceMs, async (member) => {
    await member.raiseFence(request.key, drawn, request.lockTimeMs, patienceMs);
    return true;
  });
  return drawn;
}
