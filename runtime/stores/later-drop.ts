import type { DropRequest } from "./port";

/** The same request, sent later: the key stays closed until the same time, of which so much is left. */
export function closedNoLonger({ key, requestId }: DropRequest, leftMs: number): DropRequest {
  const closedForMs = Math.ceil(leftMs);
  return closedForMs > 0 ? { key, requestId, closedForMs } : { key, requestId };
}
