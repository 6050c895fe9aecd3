import { lockKey } from "../../runtime/base/key";
import type { PlannedTag } from "./plan";
import { siteOptions } from "./site-options";

/** Returns the key of the lock as a pattern, such as `LOCK_payOrder_{orderNo}`. With `each`, returns one pattern for each part. */
export function shownKey(plan: PlannedTag): string {
  if (plan.wholeKey !== undefined) return plan.wholeKey.shown;
  const { businessFlag, each } = siteOptions(plan);
  const fixed = lockKey(String(businessFlag));
  const parts = plan.key.map(({ shown }) => `{${shown}}`);
  if (each === true) return parts.map((part) => `${fixed}_${part}`).join(" ");
  return parts.length === 0 ? fixed : `${fixed}_${parts.join()}`;
}
