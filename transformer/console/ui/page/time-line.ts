import { onOneLine } from "../../../terminal/escape";
import type { Segment } from "../state";
import { drawing, element, show } from "./dom";
import { clockText, timeText, whoText } from "./text";

const WIDTH = 1_000;
const ROW = 18;
const TICKS = 5;
const MOST_ROWS = 40;
const MOST_WAITS = 50;

/** Shows the holds and waits of a lock, with one row for each process. */
export function showTimeLine(
  place: Element,
  segments: readonly Segment[],
  until: number,
  spanMs: number,
): void {
  const from = until - spanMs;
  const shown = segments.filter(({ to = until }) => to > from);
  const byWho = Map.groupBy(shown, ({ who }) => whoText(who));
  const names = [...byWho.keys()].slice(-MOST_ROWS);
  const x = (at: number): number => (Math.max(0, at - from) / spanMs) * WIDTH;
  const rows = names.map((name) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, name),
      element("td", {}, drawnOf(byWho.get(name) ?? [], until, x)),
    ),
  );
  show(
    place,
    new Map([["", axisOf(from, spanMs)], ...rows.map((row, index) => [names[index] ?? "", row] as const)]),
  );
}

function drawnOf(segments: readonly Segment[], until: number, x: (at: number) => number): SVGSVGElement {
  const bars = segments.map(({ what, who, site, from, to }) => {
    const done = what === "holds" ? "held the lock" : "waited";
    const lasts = `for ${timeText((to ?? until) - from)}`;
    const action = to === undefined ? `has ${done} ${lasts}, since` : `${done} ${lasts}, from`;
    const title = `${whoText(who)}${site === undefined ? "" : ` · ${onOneLine(site)}`} ${action} ${clockText(from)}`;
    const width = Math.max(2, x(to ?? until) - x(from));
    return drawing(
      "rect",
      { x: x(from), y: what === "holds" ? 2 : 6, width, height: what === "holds" ? 14 : 6, class: what },
      drawing("title", {}, title),
    );
  });
  const label = segments.map(({ what }) => what).join(", ");
  return drawing(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${ROW}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    ...bars,
  );
}

function axisOf(from: number, spanMs: number): HTMLTableRowElement {
  const ticks = Array.from({ length: TICKS }, (_, index) => clockText(from + (index / (TICKS - 1)) * spanMs));
  return element(
    "tr",
    { class: "axis" },
    element("th", {}),
    element("td", {}, element("div", {}, ...ticks.map((tick) => element("span", {}, tick)))),
  );
}

/** Shows the waits, the latest first, with the holders of the lock meanwhile. */
export function showWaits(body: Element, segments: readonly Segment[], until: number): void {
  const holds = segments.filter(({ what }) => what === "holds");
  const waits = segments
    .filter(({ what }) => what === "waits")
    .slice(-MOST_WAITS)
    .toReversed();
  show(
    body,
    new Map(waits.map((wait) => [`${whoText(wait.who)} ${wait.from}`, waitRow(wait, holds, until)] as const)),
  );
}

function waitRow(wait: Segment, holds: readonly Segment[], until: number): HTMLTableRowElement {
  const { from, to = until } = wait;
  const waitedFor = new Map<string, number>();
  for (const { who, ...hold } of holds) {
    const sharedMs = Math.min(to, hold.to ?? until) - Math.max(from, hold.from);
    if (sharedMs > 0) waitedFor.set(whoText(who), (waitedFor.get(whoText(who)) ?? 0) + sharedMs);
  }
  const others = [...waitedFor].map(([name, ms]) => `${name} ${timeText(ms)}`);
  return element(
    "tr",
    {},
    element("td", { class: "time" }, clockText(from)),
    element("th", { scope: "row" }, whoText(wait.who)),
    element("td", { class: "number" }, `${timeText(to - from)}${wait.to === undefined ? ", still" : ""}`),
    element("td", {}, others.length === 0 ? "no holder seen" : others.join(", ")),
  );
}
