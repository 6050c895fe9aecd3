import { print, printError, printJson, safe, type SafeText } from "../terminal/printer";
import { openDeployment, type Target } from "./open-deployment";
import { holderText } from "./lock-table";
import { holdId, type HolderRow, type LockRow } from "./snapshot";
import { snapshots } from "./repeated-snapshots";
import { shortened } from "./port/shortened";
import { LockScanner } from "./lock-scanner";

/** A difference between two snapshots. */
interface Change {
  readonly key: string;
  readonly what: "acquired" | "waited for" | "no longer waited for" | "revoked" | "no longer held";
  readonly by?: HolderRow;
  /** The number of waiting calls. */
  readonly waiting: number;
}

const SNAPSHOT_EVERY_MS = 500;

/**
 * Prints a line for each change until the process ends. Changes between two snapshots can be missed.
 *
 * @throws {UsageError} if the servers cannot be read
 */
export async function tail(target: Target, json: boolean): Promise<0> {
  const deployment = await openDeployment(target);
  const scanner = new LockScanner(deployment);
  try {
    let before: readonly LockRow[] = [];
    let reported: string | undefined;
    for await (const seen of snapshots(scanner, SNAPSHOT_EVERY_MS)) {
      const trouble = "snapshot" in seen ? undefined : seen.trouble;
      if (trouble !== undefined && trouble !== reported) printError(safe`${trouble}`);
      reported = trouble;
      if (!("snapshot" in seen)) continue;
      const known = new Map(before.map((lock) => [lock.key, lock]));
      const locks = seen.snapshot.locks.map((lock) => withProcesses(lock, known.get(lock.key)));
      const at = new Date().toISOString();
      for (const change of changesBetween(before, locks)) {
        if (json) printJson({ at, ...change });
        else print(lineOf(change, at));
      }
      before = locks;
    }
    return 0;
  } finally {
    deployment.close();
  }
}

/** Restores the process of a revoked hold from the snapshot before. The revoked value no longer contains the whole process number. */
function withProcesses(lock: LockRow, was: LockRow | undefined): LockRow {
  const holders = lock.holders.map((one) => ({
    ...one,
    process: one.process ?? findHold(was, one)?.process,
  }));
  return { ...lock, holders };
}

/** Returns the changes ordered by key. For each key, ended holds come before new ones. */
function changesBetween(before: readonly LockRow[], after: readonly LockRow[]): Change[] {
  const [old, now] = [before, after].map((locks) => new Map(locks.map((lock) => [lock.key, lock])));
  const keys = [...new Set([...before, ...after].map(({ key }) => key))].toSorted();
  const changes: Change[] = [];
  for (const key of keys) {
    const [was, is] = [old?.get(key), now?.get(key)];
    const waiting = is?.waiting ?? 0;
    const add = (what: Change["what"], by?: HolderRow): void =>
      void changes.push({ key, what, waiting, ...(by && { by }) });
    for (const one of was?.holders ?? []) if (!findHold(is, one)) add("no longer held", one);
    for (const one of is?.holders ?? []) {
      const known = findHold(was, one);
      if (known === undefined) add("acquired", one);
      if (one.isRevoked && known?.isRevoked !== true) add("revoked", one);
    }
    if (waiting > (was?.waiting ?? 0)) add("waited for");
    if (waiting === 0 && (was?.waiting ?? 0) > 0) add("no longer waited for");
  }
  return changes;
}

function findHold(lock: LockRow | undefined, hold: HolderRow): HolderRow | undefined {
  return lock?.holders.find((one) => holdId(one) === holdId(hold));
}

function lineOf({ key, what, by, waiting }: Change, at: string): SafeText {
  const who =
    by === undefined
      ? ""
      : ` ${what === "revoked" ? "from" : "by"} ${holderText({ ...by, isRevoked: false })}`;
  const others = waiting > 0 ? `, ${waiting} waiting` : "";
  return safe`${at} ${shortened(key)} ${what}${who}${others}`;
}
