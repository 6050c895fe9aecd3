import { liveOnMasters } from "./masters-world";
import { liveOnOneServer } from "./small-world";
import type { Choice, Manner, Plan, Story } from "./story";

/**
 * Runs one schedule of a small world, from its beginning to its end, with the runtime's real code in virtual time.
 *
 * @param choices the deviations from the plain order, in the order of their steps
 */
export function live(plan: Plan, choices: readonly Choice[], manner: Manner = {}): Promise<Story> {
  return plan.masters === undefined
    ? liveOnOneServer(plan, choices, manner)
    : liveOnMasters(plan, plan.masters, choices, manner);
}
