/**
 * Returns a warning if the server may evict held locks when its memory is full.
 *
 * @param memory the section `memory` of INFO
 * @returns undefined if the server evicts nothing
 */
export function evictionWarning(memory: string): string | undefined {
  const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1];
  const limit = Number(/^maxmemory:(\d+)/m.exec(memory)?.[1] ?? 0);
  if (policy === undefined || policy === "noeviction" || limit === 0) return undefined;
  return `Redis evicts keys when its memory is full (maxmemory-policy ${policy}). If it evicts a held lock, a second caller can acquire it. Fix: keep locks in a Redis with maxmemory-policy noeviction`;
}
