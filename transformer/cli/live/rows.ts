import { safe, type SafeText } from "../printer";
import { table } from "../table";
import type { HolderRow, LockRow, Snapshot, Process, Announcement } from "./snapshot";
import { shortened } from "./shortened";
import { few, longest } from "./words";

/** `worker-3/4711`, as it says of itself, or the number with which its request ids begin. */
function processText({ number, host, pid }: Process): string {
  return host === undefined ? number : `${host}/${pid ?? "?"}`;
}

export function holderText({ process, storeValue, isRevoked }: HolderRow): string {
  const who = process === undefined ? storeValue : processText(process);
  return isRevoked ? `${who} (revoked)` : who;
}

/** The same with its function, where that is known. */
function withSite(text: string, { site }: Announcement): string {
  return site === undefined ? text : `${text} ${site}`;
}

/** That is not shown as 0.0 s: of what the first look finds, nothing is known yet. */
const SHORTEST_MS = 50;

/** The locks as a table, as many as there is room for. */
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
    few(
      lock.waiters.map((waiter) => withSite(processText(waiter), waiter)),
      lock.waiting,
      "-",
    ),
  ]);
  const lines = table(["waiting", "longest", "state", "for", "left", "lock", "held by", "next"], rows);
  const left = locks.length - shown.length;
  return left > 0 ? [...lines, safe`... and ${left} more`] : lines;
}

/** Tells what was read, what that cost, and what is left out. */
export function lookText(look: Snapshot): SafeText {
  const { locks, keys, scanned, isWhole, leftOut, commands, tookMs, masters, unanswered } = look;
  const held = locks.filter(({ state }) => state === "held").length;
  const waiting = locks.reduce((all, lock) => all + lock.waiting, 0);
  const missing = unanswered === 0 ? "" : ` ${unanswered} of ${masters} masters did not answer.`;
  const rest = isWhole ? "" : ` Not all of the ${keys} keys have been looked at yet.`;
  const others =
    leftOut === 0 ? "" : ` About ${leftOut} more locks are left out. Fix: choose some with \`--match\`.`;
  return safe`${held} held, ${waiting} waiting, of ${locks.length} locks. ${commands} commands in ${Math.round(tookMs)} ms, up to ${Math.min(scanned, keys)} names looked through.${missing}${rest}${others}`;
}

function inSeconds(ms: number): string {
  return ms < 0 ? "no end" : `${(ms / 1_000).toFixed(1)} s`;
}
