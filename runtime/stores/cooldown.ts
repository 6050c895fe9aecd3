import type { ReleaseRequest } from "./port";

/** Returns the request for a later attempt. The key stays closed until the same time as before, which is `leftMs` from now. */
export function withCooldownLeft(request: ReleaseRequest, leftMs: number): ReleaseRequest {
  if (request.cooldownMs === undefined) return request;
  const cooldownMs = Math.ceil(leftMs);
  const { key, requestId } = request;
  return cooldownMs > 0 ? { key, requestId, cooldownMs } : { key, requestId };
}
