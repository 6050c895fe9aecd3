import { isTerminal, print, printJson, printScreen, safe, terminalSize } from "../terminal/printer";
import { openDeployment, type Deployment } from "./deployment";
import { snapshots } from "./repeated-snapshots";
import { lockTable, snapshotText } from "./lock-table";
import { NAMES_OF_ONE_SNAPSHOT, LockScanner, type ScanOptions } from "./lock-scanner";

const REFRESHED_EVERY_MS = 1_000;
const LINES_BESIDE_THE_TABLE = 5;

/**
 * Shows held locks and waiters: repeatedly on a terminal, otherwise once.
 *
 * @throws {UsageError} if the servers cannot be read
 */
export async function top(urls: readonly string[], options: ScanOptions, json: boolean): Promise<number> {
  const deployment = await openDeployment(urls);
  const scanner = new LockScanner(options);
  try {
    if (isTerminal() && !json) await live(scanner, deployment);
    const snapshot = await scanner.look(deployment, NAMES_OF_ONE_SNAPSHOT);
    if (json) printJson(snapshot, 2);
    else
      print(
        snapshotText(snapshot),
        ...(snapshot.locks.length === 0 ? [] : [safe``, ...lockTable(snapshot.locks, Infinity)]),
      );
    return 0;
  } finally {
    deployment.close();
  }
}

/** Refreshes the terminal until the process ends. */
async function live(scanner: LockScanner, deployment: Deployment): Promise<void> {
  for await (const seen of snapshots(scanner, deployment, REFRESHED_EVERY_MS)) {
    const room = Math.max(1, terminalSize().rows - LINES_BESIDE_THE_TABLE);
    if ("trouble" in seen) printScreen(safe`${seen.trouble}`);
    else printScreen(snapshotText(seen.snapshot), safe``, ...lockTable(seen.snapshot.locks, room));
  }
}
