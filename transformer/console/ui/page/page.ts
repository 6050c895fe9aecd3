import { onOneLine } from "../../../terminal/escape";
import type { LockRow } from "../../snapshot";
import type { State } from "../state";
import { byId } from "./dom";
import { showHeat } from "./heat";
import { leftText, showLocks, withSite } from "./locks";
import { offerRelease } from "./release";
import { askState, takeToken } from "./requests";
import { unknownCalls } from "../../summaries";
import { showTimeLine, showWaits } from "./time-line";
import { clockText, countText, holderText, timeText } from "./text";

const ASKED_EVERY_MS = 500;

const find = byId("find", HTMLInputElement);
const span = byId("span", HTMLSelectElement);

/** Returns the key of the lock that is shown in detail. It is part of the address, so that bookmarks and the back button work. */
function shownKey(): string | undefined {
  return new URLSearchParams(location.hash.slice(1)).get("lock") ?? undefined;
}

function showState(state: State): void {
  const { at, since, servers, count, look, locks, more, heat, staleForMs, trouble = "" } = state;
  text("servers", servers.join(", "));
  showStatus(staleForMs, trouble);
  text(
    "count",
    `${count.held.toLocaleString()} held, ${count.waiting.toLocaleString()} waiting, of ${countText(count.locks, "lock")}`,
  );
  text("cost", look === undefined ? "" : costText(look));
  text("unknown", look === undefined ? "" : unknownCalls(look));
  text("more", more > 0 ? `and ${more} more: search for a part of the key` : "");
  text("since", `Sampled twice a second since ${clockText(since)}. Shorter events may be missing.`);
  showLocks(byId("locks", HTMLElement), locks);
  hide("no-locks", locks.length > 0);
  showHeat(byId("heat", HTMLElement), heat, at);
  hide("no-heat", heat.length > 0);
  showLock(state);
}

/**
 * Shows whether the locks on the page are recent.
 *
 * @param staleForMs the age of the locks. `undefined` if they are recent
 */
function showStatus(staleForMs: number | undefined, trouble: string): void {
  byId("status", HTMLElement).className = staleForMs === undefined ? "alive" : "";
  text("stale", staleForMs === undefined ? "" : `stale for ${timeText(staleForMs)}`);
  text("trouble", trouble);
}

function costText(look: NonNullable<State["look"]>): string {
  const { commands, tookMs, scanned, keys, isWhole, leftOut, masters, unanswered } = look;
  const missing = unanswered === 0 ? "" : `; ${unanswered} of ${masters} masters did not answer`;
  const rest = isWhole ? "" : `; not all of its ${keys.toLocaleString()} keys have been scanned yet`;
  const others = leftOut === 0 ? "" : `; about ${countText(leftOut, "more lock")} left out`;
  return `One sample: ${countText(commands, "command")} in ${Math.round(tookMs)} ms, up to ${countText(Math.min(scanned, keys), "key")} scanned${missing}${rest}${others}`;
}

function showLock({ at, lock, line = [] }: State): void {
  const key = shownKey();
  hide("lock", key === undefined);
  if (key === undefined) return;
  text("lock-key", onOneLine(key));
  text("lock-state", lock === undefined ? "free, and nobody waits" : stateText(lock));
  byId("revoke", HTMLButtonElement).disabled = lock?.state !== "held";
  byId("free", HTMLButtonElement).disabled = lock === undefined || lock.state === "free";
  showTimeLine(byId("line", HTMLElement), line, at, Number(span.value));
  hide(
    "no-waits",
    line.some(({ what }) => what === "waits"),
  );
  showWaits(byId("waits", HTMLElement), line, at);
}

function stateText({ state, holders, waiting, seenForMs, masters }: LockRow): string {
  const by = holders.map((holder) => {
    const duration = holder.forMs === undefined ? "" : ` for ${timeText(holder.forMs)}`;
    return `${withSite(holderText(holder), holder)}${duration}`;
  });
  const parts = [
    by.length === 0 ? state : `held by ${by.join(", ")}`,
    ...(by.length === 0 ? [] : [`${leftText(holders)} left`]),
    `seen for ${timeText(seenForMs)}`,
    `${waiting} waiting`,
    ...(masters > 1 ? [`on ${masters} masters`] : []),
  ];
  return parts.join("; ");
}

function text(id: string, value: string): void {
  const target = byId(id, HTMLElement);
  if (target.textContent !== value) target.textContent = value;
}

function hide(id: string, isHidden: boolean): void {
  byId(id, HTMLElement).hidden = isHidden;
}

let isAsking = false;
/** The time from which the locks on the page are. */
let freshAt = performance.now();

async function refresh(): Promise<void> {
  if (isAsking) return;
  isAsking = true;
  try {
    const state = await askState(find.value, shownKey());
    freshAt = performance.now() - (state.staleForMs ?? 0);
    showState(state);
  } catch (error) {
    showStatus(performance.now() - freshAt, (error as Error).message);
  } finally {
    isAsking = false;
  }
}

takeToken();
offerRelease(shownKey);
find.addEventListener("input", () => void refresh());
span.addEventListener("change", () => void refresh());
addEventListener("hashchange", () => {
  takeToken();
  text("release-result", "");
  void refresh();
});
setInterval(() => void (document.hidden || refresh()), ASKED_EVERY_MS);
void refresh();
