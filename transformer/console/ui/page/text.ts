import { onOneLine } from "../../../terminal/escape";
import type { HolderRow, Process } from "../../snapshot";
import { remarks } from "../../summaries";

/** Returns the host and the pid that the process announced, such as `worker-3/4711`, or the process number. */
export function processText({ number, host, pid }: Process): string {
  return host === undefined ? number : `${onOneLine(host)}/${pid ?? "?"}`;
}

export function whoText(who: Process | string): string {
  return typeof who === "string" ? `“${onOneLine(who)}”` : processText(who);
}

export function holderText({ process, storeValue, ...hold }: HolderRow): string {
  return whoText(process ?? storeValue) + onOneLine(remarks(hold));
}

const NO_BREAK = "\u00A0";

export function timeText(ms: number): string {
  if (ms < 0) return `no${NO_BREAK}end`;
  const [value, unit] =
    ms < 60_000 ? [ms / 1_000, "s"] : ms < 3_600_000 ? [ms / 60_000, "min"] : [ms / 3_600_000, "h"];
  return `${value.toFixed(1)}${NO_BREAK}${unit}`;
}

export function clockText(at: number): string {
  return new Date(at).toLocaleTimeString(undefined, { hour12: false });
}

export function countText(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`;
}
