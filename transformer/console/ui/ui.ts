import { once } from "node:events";
import { print, safe } from "../../terminal/printer";
import { openDeployment, type Target } from "../open-deployment";
import type { Snapshot } from "../snapshot";
import { snapshots, type Stale } from "../repeated-snapshots";
import { LockScanner } from "../lock-scanner";
import { History } from "./history";
import { Releases } from "./releases";
import { serve } from "./server";
import type { State } from "./state";

const SNAPSHOT_EVERY_MS = 500;
const MOST_LOCKS = 200;
const MOST_HEAT_ROWS = 25;

/**
 * Shows holders, waiters, and the last hour in a browser on this machine, until the process ends.
 *
 * @param port 0 means any free port
 * @throws {UsageError} if the servers cannot be read, or the port is in use
 */
export async function ui(target: Target, port: number): Promise<number> {
  const deployment = await openDeployment(target);
  const history = new History();
  const since = Date.now();
  let at = since;
  let snapshot: Snapshot | undefined;
  let freshAt = performance.now();
  let stale: Stale | undefined;
  const state = (find: string, lock: string | undefined): State => {
    const locks = snapshot?.locks ?? [];
    const matching = locks.filter(({ key }) => key.toLowerCase().includes(find.toLowerCase()));
    const selected = lock === undefined ? undefined : locks.find(({ key }) => key === lock);
    return {
      at,
      since,
      servers: deployment.names,
      ...(stale && { ...stale, staleForMs: performance.now() - freshAt }),
      ...(snapshot && { look: costOf(snapshot) }),
      count: {
        locks: locks.length,
        held: locks.filter(({ state: is }) => is === "held").length,
        waiting: locks.reduce((all, { waiting }) => all + waiting, 0),
      },
      locks: matching.slice(0, MOST_LOCKS),
      more: Math.max(0, matching.length - MOST_LOCKS),
      heat: history.heat(MOST_HEAT_ROWS, at),
      ...(lock !== undefined && { line: history.line(lock) }),
      ...(selected && { lock: selected }),
    };
  };
  const watch = async (): Promise<void> => {
    for await (const seen of snapshots(new LockScanner(deployment), SNAPSHOT_EVERY_MS)) {
      stale = "snapshot" in seen ? undefined : seen;
      if (!("snapshot" in seen)) continue;
      at = Date.now();
      freshAt = performance.now();
      snapshot = seen.snapshot;
      history.add(snapshot.locks, at);
    }
  };
  try {
    const { server, url } = await serve({ state, releases: new Releases(deployment) }, port);
    print(
      safe`Open ${url}`,
      safe`Everyone with this address can see and revoke locks. Press Ctrl-C to stop.`,
    );
    await Promise.race([watch(), once(server, "close")]);
    return 0;
  } finally {
    deployment.close();
  }
}

function costOf(snapshot: Snapshot): NonNullable<State["look"]> {
  const { locks: _, ...cost } = snapshot;
  return cost;
}
