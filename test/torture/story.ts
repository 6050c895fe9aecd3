import type { Violation } from "./beliefs";
import type { Entry, History } from "./history";
import type { RoundResult } from "./round";

const BEFORE_MS = 3_000;
const MOST_LINES_BEFORE = 50;
const MOST_LINES_AFTER = 10;

/** Returns what happened around a violation: to the key, and to all processes. */
export function storyAround(violation: Violation, { histories, story }: RoundResult): string[] {
  const { at } = violation;
  const lines = [...story, ...histories.flatMap((history) => linesOf(history, violation.key))].toSorted(
    (one, other) => one.at - other.at,
  );
  const before = lines.filter((line) => line.at <= at && line.at > at - BEFORE_MS).slice(-MOST_LINES_BEFORE);
  const after = lines.filter((line) => line.at > at).slice(0, MOST_LINES_AFTER);
  return [...before, { at, text: "THE VIOLATION" }, ...after].map(
    (line) => `${(line.at - at).toFixed(1).padStart(9)} ms  ${line.text}`,
  );
}

/** A caller checks its lock every few milliseconds. Only the last check that passes and the first that fails are shown. */
function linesOf({ name, entries }: History, key: string): { readonly at: number; readonly text: string }[] {
  const calls = new Set<number>();
  for (const entry of entries) {
    if (entry.event === "called" && entry.what.includes(key)) calls.add(entry.call);
  }
  const lastChecks = new Map<number, Entry>();
  const firstLosses = new Map<number, Entry>();
  for (const entry of entries) {
    if (entry.event === "sure") lastChecks.set(entry.call, entry);
    else if (entry.event === "lost" && !firstLosses.has(entry.call)) firstLosses.set(entry.call, entry);
  }
  return entries.flatMap((entry) => {
    if (entry.event === "complaint" || entry.event === "proven" || !calls.has(entry.call)) return [];
    if (entry.event === "sure" && lastChecks.get(entry.call) !== entry) return [];
    if (entry.event === "lost" && firstLosses.get(entry.call) !== entry) return [];
    return [{ at: entry.at, text: `${name}, call ${entry.call} ${detailsOf(entry)}` }];
  });
}

function detailsOf(entry: Exclude<Entry, { event: "complaint" | "proven" }>): string {
  switch (entry.event) {
    case "called":
      return `asks for ${entry.what}`;
    case "entered":
      return entry.fencingToken === undefined ? "enters" : `enters with token ${entry.fencingToken}`;
    case "sure":
      return `is sure of its lock for ${(entry.until - entry.at).toFixed(0)} ms more`;
    case "ended":
      return `ended with ${entry.with}`;
    default:
      if (entry.event === "committed") return "had a guard until then, and committed";
      return entry.event === "left" ? "leaves" : "learns that the lock is lost";
  }
}
