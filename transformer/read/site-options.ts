import type { PlannedTag } from "./plan";

/** Returns the entries of the site's object as values. The plan has them as code: `lockTime: "20s"`. */
export function siteOptions({ options }: Pick<PlannedTag, "options">): Record<string, unknown> {
  return Object.fromEntries(
    options.map((entry) => {
      const colon = entry.indexOf(":");
      return [entry.slice(0, colon), JSON.parse(entry.slice(colon + 1)) as unknown];
    }),
  );
}
