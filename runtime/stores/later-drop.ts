import type { ReleaseRequest } from "./port";

/** The same request, sent later: the key stays closed until the same time, of which so much is left. */
export function closedNoLonger(request: ReleaseRequest, leftMs: number): ReleaseRequest {
  if (request.cooldownMs === undefined) return request;
  const cooldownMs = Math.ceil(leftMs);
  const { key, requestId } = request;
  return cooldownMs > 0 ? { key, requestId, cooldownMs } : { key, requestId };
}
