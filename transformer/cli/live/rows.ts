import { onOneLine } from "../one-line";
import type { HolderRow, LockRow, Look, Process, Said } from "./look";
import { few, longest } from "./words";

/** `worker-3/4711`, as it says of itself, or the number with which its request ids begin. */
function processText({ number, host, pid }: Process): string {
  return host === undefined ? number : `${onOneLine(host)}/${pid ?? "?"}`;
}

export function holderText({ process, storeValue, isRevoked }: HolderRow): string {
  const who = process === undefined ? onOneLine(storeValue) : processText(process);
  return isRevoked ? `${who} (revoked)` : who;
}

/** The same with its function, where that is known. */
function withSite(text: string, { site }: Said): string {
  return site === undefined ? text : `${text} ${onOneLine(site)}`;
}

/** That is not shown as 0.0 s: of what the first look finds, nothing is known yet. */
const SHORTEST_MS = 50;

/** The locks as a table, as many as there is room for. */
export function lockTable(locks: readonly LockRow[], most: number): string {
  const shown = locks.slice(0, most);
  const rows = shown.map((lock) => [
    String(lock.waiting),
    longest(lock.waiters, inSeconds) ?? "-",
    lock.state,
    longest(lock.holders, inSeconds) ??
      (lock.seenForMs < SHORTEST_MS ? "-" : `>= ${inSeconds(lock.seenForMs)}`),
    lock.holders.length === 0 ? "-" : inSeconds(Math.min(...lock.holders.map(({ leftMs }) => leftMs))),
    onOneLine(lock.key),
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
  const lines = [["waiting", "longest", "state", "for", "left", "lock", "held by", "next"], ...rows];
  const widths = lines.reduce<number[]>(
    (widest, line) => line.map((cell, index) => Math.max(widest[index] ?? 0, cell.length)),
    [],
  );
  const table = lines.map((line) =>
    line
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  const left = locks.length - shown.length;
  return [...table, ...(left > 0 ? [`... and ${left} more`] : [])].map((line) => `${line}\n`).join("");
}

/** What was looked at, and what it has cost. */
export function lookText(look: Look): string {
  const { locks, keys, scanned, isWhole, commands, tookMs, masters, unanswered } = look;
  const held = locks.filter(({ state }) => state === "held").length;
  const waiting = locks.reduce((all, lock) => all + lock.waiting, 0);
  const rest = isWhole ? "" : ` Not all of its ${keys} keys have been looked at yet: the next look goes on.`;
  const missing = unanswered === 0 ? "" : ` ${unanswered} of ${masters} masters did not answer.`;
  return `${held} held, ${waiting} waiting, of ${locks.length} locks. ${commands} commands in ${Math.round(tookMs)} ms, up to ${Math.min(scanned, keys)} names looked through.${missing}${rest}\n`;
}

function inSeconds(ms: number): string {
  return ms < 0 ? "no end" : `${(ms / 1_000).toFixed(1)} s`;
}
