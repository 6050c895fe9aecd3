import { onOneLine } from "../../../terminal/escape";
import type { HolderRow, LockRow, Announcement } from "../../snapshot";
import { callsOf, few, longest, waitersIn } from "../../summaries";
import { element, show } from "./dom";
import { holderText, processText, timeText } from "./text";

/** Shows the locks, the most contended first. */
export function showLocks(body: Element, locks: readonly LockRow[]): void {
  show(body, new Map(locks.map((lock) => [lock.key, rowOf(lock)])));
}

export function lockLink(key: string): HTMLAnchorElement {
  return element("a", { href: `#lock=${encodeURIComponent(key)}` }, onOneLine(key));
}

function rowOf(lock: LockRow): HTMLTableRowElement {
  const { key, state, waiting, holders, waiters } = lock;
  return element(
    "tr",
    { class: state },
    element("td", { class: waiting > 0 ? "number waiting" : "number" }, String(waiting)),
    element("td", { class: "number" }, longest(waiters, timeText) ?? "–"),
    element("th", { scope: "row" }, lockLink(key)),
    element("td", {}, element("span", { class: `state ${state}` }, state)),
    element("td", { class: "number" }, longest(holders, timeText) ?? `≥ ${timeText(lock.seenForMs)}`),
    element("td", { class: "number" }, leftText(holders)),
    element(
      "td",
      {},
      few(
        holders.map((one) => withSite(holderText(one), one)),
        holders.length,
        "–",
      ),
    ),
    element(
      "td",
      {},
      few(
        waiters.map((one) => withSite(processText(one), one) + callsOf(one)),
        waitersIn(lock),
        "–",
      ),
    ),
  );
}

export function withSite(text: string, { site }: Announcement): string {
  return site === undefined ? text : `${text} · ${onOneLine(site)}`;
}

/** Returns the time until the first hold expires, unless it is renewed. */
export function leftText(holders: readonly HolderRow[]): string {
  return holders.length === 0 ? "–" : timeText(Math.min(...holders.map(({ leftMs }) => leftMs)));
}
