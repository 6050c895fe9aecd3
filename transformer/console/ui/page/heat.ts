import type { HeatRow } from "../state";
import { drawing, element, show } from "./dom";
import { lockLink } from "./locks";
import { clockText, countText } from "./text";

const MINUTE_MS = 60_000;
const CELL = 10;
const STEPS = 5;

/** Shows the most waiters of each lock in each minute. A darker cell means more waiters. */
export function showHeat(body: Element, rows: readonly HeatRow[], at: number): void {
  const most = Math.max(1, ...rows.flatMap(({ cells }) => cells));
  show(body, new Map(rows.map((row) => [row.key, rowOf(row, most, at)])));
}

function rowOf({ key, cells }: HeatRow, most: number, at: number): HTMLTableRowElement {
  const top = Math.max(...cells);
  const drawn = drawing(
    "svg",
    {
      viewBox: `0 0 ${cells.length * CELL} ${CELL}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `Up to ${countText(top, "waiter")} in any minute of the last hour`,
    },
    ...cells.map((waiting, index) => cellOf(waiting, index, cells.length, most, at)),
  );
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, lockLink(key)),
    element("td", { class: "heat" }, drawn),
    element("td", { class: "number" }, String(top)),
  );
}

function cellOf(waiting: number, index: number, count: number, most: number, at: number): SVGRectElement {
  const minute = Math.floor(at / MINUTE_MS) * MINUTE_MS - (count - 1 - index) * MINUTE_MS;
  const warmth = waiting === 0 ? 0 : Math.max(1, Math.round((STEPS * waiting) / most));
  return drawing(
    "rect",
    { x: index * CELL, y: 0, width: CELL - 1, height: CELL, class: `warmth-${warmth}` },
    drawing("title", {}, `${clockText(minute)}: up to ${countText(waiting, "waiter")}`),
  );
}
