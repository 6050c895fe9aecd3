import {
  isTerminal,
  print,
  printJson,
  printScreen,
  safe,
  terminalSize,
  type SafeText,
} from "../terminal/printer";
import { openDeployment, type Target } from "./open-deployment";
import { snapshots } from "./repeated-snapshots";
import { lockTable, snapshotText, staleText } from "./lock-table";
import type { Snapshot } from "./snapshot";
import { NAMES_OF_ONE_SNAPSHOT, LockScanner } from "./lock-scanner";

const REFRESHED_EVERY_MS = 1_000;
const LINES_BESIDE_THE_TABLE = 6;

/**
 * Shows held locks and waiters: repeatedly on a terminal, otherwise once.
 *
 * @throws {UsageError} if the servers cannot be read
 */
export async function top(target: Target, json: boolean): Promise<number> {
  const deployment = await openDeployment(target);
  const scanner = new LockScanner(deployment);
  try {
    if (isTerminal() && !json) await live(scanner);
    const snapshot = await scanner.look(NAMES_OF_ONE_SNAPSHOT);
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
async function live(scanner: LockScanner): Promise<void> {
  let last: Snapshot | undefined;
  const lastLines = (): readonly SafeText[] => {
    const room = Math.max(1, terminalSize().rows - LINES_BESIDE_THE_TABLE);
    return last === undefined ? [] : [snapshotText(last), safe``, ...lockTable(last.locks, room)];
  };
  for await (const seen of snapshots(scanner, REFRESHED_EVERY_MS)) {
    if ("snapshot" in seen) {
      last = seen.snapshot;
      printScreen(...lastLines());
    } else {
      printScreen(staleText(seen), ...lastLines());
    }
  }
}
