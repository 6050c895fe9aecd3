import { safe, type SafeText } from "../terminal/printer";
import { table } from "../terminal/table";
import type { HolderRow, LockRow, Snapshot, Process, Announcement, WaiterRow } from "./snapshot";
import type { Stale } from "./repeated-snapshots";
import { shortened } from "./port/shortened";
import { callsOf, few, longest, remarks, unknownCalls, waitersIn } from "./summaries";

/** Returns the host and the pid that the process announced, such as `worker-3/4711`, or the process number. */
function processText({ number, host, pid }: Process): string {
  return host === undefined ? number : `${host}/${pid ?? "?"}`;
}

export function holderText({ process, storeValue, ...hold }: HolderRow): string {
  return (process === undefined ? storeValue : processText(process)) + remarks(hold);
}

/** Appends the tagged function, if it is known. */
function withSite(text: string, { site }: Announcement): string {
  return site === undefined ? text : `${text} ${site}`;
}

function waiterText(waiter: WaiterRow): string {
  return withSite(processText(waiter), waiter) + callsOf(waiter);
}

/** A shorter time is shown as "-" instead of "0.0 s", because the first snapshot cannot know it. */
const SHORTEST_MS = 50;

/** Formats the locks as a table with at most this many rows. */
export function lockTable(locks: readonly LockRow[], most: number): SafeText[] {
  const shown = locks.slice(0, most);
  const rows = shown.map((lock) => [
    String(lock.waiting),
    longest(lock.waiters, inSeconds) ?? "-",
    lock.state,
    longest(lock.holders, inSeconds) ??
      (lock.seenForMs < SHORTEST_MS ? "-" : `>= ${inSeconds(lock.seenForMs)}`),
    lock.holders.length === 0 ? "-" : inSeconds(Math.min(...lock.holders.map(({ leftMs }) => leftMs))),
    shortened(lock.key),
    few(
      lock.holders.map((holder) => withSite(holderText(holder), holder)),
      lock.holders.length,
      "-",
    ),
    few(lock.waiters.map(waiterText), waitersIn(lock), "-"),
  ]);
  const lines = table(["waiting", "longest", "state", "for", "left", "lock", "held by", "next"], rows);
  const left = locks.length - shown.length;
  return left > 0 ? [...lines, safe`... and ${left} more`] : lines;
}

/** Says how old the last snapshot is, because the server has not replied since then. */
export function staleText({ staleForMs, trouble }: Stale): SafeText {
  return safe`Stale for ${inSeconds(staleForMs)}: ${trouble ?? "the server has not replied yet."}`;
}

/** Summarizes what was read, how much that cost, and what is left out. */
export function snapshotText(snapshot: Snapshot): SafeText {
  const { locks, keys, scanned, isWhole, leftOut, commands, tookMs, masters, unanswered } = snapshot;
  const held = locks.filter(({ state }) => state === "held").length;
  const waiting = locks.reduce((all, lock) => all + lock.waiting, 0);
  const unknown = unknownCalls(snapshot).replace(/^(?=.)/, " ");
  const missing = unanswered === 0 ? "" : ` ${unanswered} of ${masters} masters did not answer.`;
  const rest = isWhole ? "" : ` Not all of the ${keys} keys have been scanned yet.`;
  const others =
    leftOut === 0 ? "" : ` About ${leftOut} more locks are not shown. Use \`--match\` to select locks.`;
  return safe`${held} held, ${waiting} waiting, of ${locks.length} locks.${unknown} ${commands} commands in ${Math.round(tookMs)} ms, up to ${Math.min(scanned, keys)} keys scanned.${missing}${rest}${others}`;
}

function inSeconds(ms: number): string {
  return ms < 0 ? "no end" : `${(ms / 1_000).toFixed(1)} s`;
}
