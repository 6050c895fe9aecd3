import type { AcquireRequest } from "../port";
import { plain } from "./master";
import { NO_ANSWER, type Masters } from "./masters";

/**
 * The largest that a majority draws, once it has the hold, is the token; and before anybody sees it, a majority will
 * draw none but larger ones.
 *
 * @throws where there is no majority for either
 */
export async function drawToken(
  masters: Masters,
  request: AcquireRequest,
  patienceMs: number,
): Promise<number> {
  let token = 0;
  await masters.poll(patienceMs, async ({ store }) => {
    const [reply = NO_ANSWER] = await store.renew([{ ...plain(request), fencing: true }], patienceMs);
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
