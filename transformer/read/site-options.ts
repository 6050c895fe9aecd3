import type { Plan } from "./plan";

/** The entries of the site's object, which the plan has as code: `lockTime: "20s"`. */
export function siteOptions({ options }: Pick<Plan, "options">): Record<string, unknown> {
  return Object.fromEntries(
    options.map((entry) => {
      const colon = entry.indexOf(":");
      return [entry.slice(0, colon), JSON.parse(entry.slice(colon + 1)) as unknown];
    }),
  );
}
