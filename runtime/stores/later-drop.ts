import type { DropRequest } from "./port";

/** The same request, sent later: the key stays closed until the same time, of which so much is left. */
export function closedNoLonger(request: DropRequest, leftMs: number): DropRequest {
  if (request.closedForMs === undefined) return request;
  const closedForMs = Math.ceil(leftMs);
  const { key, requestId } = request;
  return closedForMs > 0 ? { key, requestId, closedForMs } : { key, requestId };
}
