import type { Violation } from "./beliefs";
import type { Entry, History } from "./history";
import type { RoundResult } from "./round";

const BEFORE_MS = 3_000;
const MOST_LINES = 60;

/** Returns what happened around a violation: to the key, and to all processes. */
export function storyAround(violation: Violation, { histories, story }: RoundResult): string[] {
  const { at } = violation;
  const isNear = (event: { readonly at: number }): boolean =>
    event.at > at - BEFORE_MS && event.at <= at + 100;
  const lines = [
    ...story.filter(isNear),
    ...histories.flatMap((history) => linesOf(history, violation.key)).filter(isNear),
    { at, text: "THE VIOLATION" },
  ];
  return lines
    .toSorted((one, other) => one.at - other.at)
    .slice(-MOST_LINES)
    .map((line) => `${(line.at - at).toFixed(1).padStart(9)} ms  ${line.text}`);
}

/** A caller checks its lock every other millisecond: of its checks only the last is told. */
function linesOf({ name, entries }: History, key: string): { readonly at: number; readonly text: string }[] {
  const calls = new Set<number>();
  for (const entry of entries) {
    if (entry.event === "called" && entry.what.includes(key)) calls.add(entry.call);
  }
  const lastChecks = new Map<number, Entry>();
  for (const entry of entries) if (entry.event === "sure") lastChecks.set(entry.call, entry);
  return entries.flatMap((entry) => {
    if (entry.event === "complaint" || !calls.has(entry.call)) return [];
    if (entry.event === "sure" && lastChecks.get(entry.call) !== entry) return [];
    return [{ at: entry.at, text: `${name}, call ${entry.call} ${detailsOf(entry)}` }];
  });
}

function detailsOf(entry: Exclude<Entry, { event: "complaint" }>): string {
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
      return entry.event === "left" ? "leaves" : "learns that the lock is lost";
  }
}
