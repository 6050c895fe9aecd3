import type { Fault } from "./judge";
import { expectationOf } from "./expectation";
import type { Setup } from "./setup";

/** A fault that Lockweave cannot prevent. The documentation says so, or the host is the reason. */
interface Limit {
  readonly reason: string;
  /** The section of the documentation that names the limit. */
  readonly page: string;
  readonly permits: Fault["kind"];
  readonly covers: (setup: Setup) => boolean;
}

export const LIMITS: Readonly<Record<string, Limit>> = {
  "a package without comments": {
    reason: "A package built unwoven and without comments has no tags in its code or its declarations.",
    page: "docs/checking.md#builds-of-several-parts",
    permits: "unlocked",
    covers: ({ layout, mode }) => layout === "linked-unwoven" && mode === "no-comments",
  },
  "a loader without the plugin": {
    reason:
      "A request with `!!` bypasses the loaders in webpack's configuration, and the loader does not see it.",
    page: "docs/checking.md#other-plugins",
    permits: "unlocked",
    covers: ({ host, order }) => host === "webpack-loader" && order.startsWith("loads"),
  },
  "errors of ts-node's thread": {
    reason:
      "ts-node's hook for ES modules stops the start, but Node 20 does not print the error of its thread.",
    page: "docs/compilers.md#ts-node",
    permits: "broken",
    covers: (setup) =>
      setup.host === "ts-node" && setup.file !== "ts-in-cjs" && expectationOf(setup) !== "locked",
  },
};

export function limitOf(setup: Setup, fault: Fault): string | undefined {
  return Object.keys(LIMITS).find((name) => {
    const limit = LIMITS[name];
    return limit?.permits === fault.kind && limit.covers(setup);
  });
}
