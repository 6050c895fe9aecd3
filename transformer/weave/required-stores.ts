import { DEFAULT_STORE } from "../../runtime/base/limits";
import type { Plan } from "../read/plan";
import type { Piece } from "../text/edits";
import { stringLiteral } from "../text/string-literal";

/**
 * Returns the statements with which the module tells the runtime, when it is loaded, which stores its tags name:
 * `lockweave.needsStore("payments", "OrderService.pay");`. So a store that nobody configured causes an error when the application starts.
 */
export function requiredStores(plans: readonly Plan[], namespace: string): Piece[] {
  const byStore = new Map<string, Plan[]>();
  for (const plan of plans) {
    const { store } = plan;
    if (store === undefined || store === DEFAULT_STORE) continue;
    byStore.set(store, [...(byStore.get(store) ?? []), plan]);
  }
  return [...byStore].flatMap(([store, [first, ...others]]) => {
    if (first === undefined) return [];
    const sites = new Set([first, ...others].map(({ site }) => stringLiteral(site)));
    const code = ` ${namespace}.needsStore(${[stringLiteral(store), ...sites].join(", ")});`;
    return [{ code, from: first.at, exact: false }];
  });
}
