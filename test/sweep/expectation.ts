import { isCompiler, type Setup } from "./setup";

/**
 * What a setup has to be: `locked`; `free`, since its tag is gone; `safe`, which is locked or refused with a cure; or `gone`, which
 * is free or refused.
 */
export type Expectation = "locked" | "free" | "safe" | "gone";

export function expectationOf(setup: Setup): Expectation {
  const works = isDocumentedToWork(setup);
  if (setup.cache === "tag-removed") return works ? "free" : "gone";
  return works ? "locked" : "safe";
}

/** Whether docs/hosts.md and docs/guards.md promise a program that runs. */
function isDocumentedToWork(setup: Setup): boolean {
  return hasOursInForce(setup) && weavesLayout(setup) && !isRefusedByDesign(setup);
}

/** Hosts that ask every plugin get the tag from another plugin that keeps the comments. */
function hasOursInForce(setup: Setup): boolean {
  const { host, order } = setup;
  if (order === "first") return true;
  if (order === "forgotten" || !order.endsWith("keeping")) return false;
  return ["rollup", "rolldown", "vite", "tsdown", "farm"].includes(host) || order === "transforms-keeping";
}

function weavesLayout(setup: Setup): boolean {
  const { layout } = setup;
  if (layout === "linked-unwoven") return false;
  if (layout === "linked-source") return !isCompiler(setup);
  return true;
}

/**
 * tsup loads each file before its plugins can if it has to emit the metadata of decorators. Rollup does not ask plugins again for modules
 * in its cache.
 */
function isRefusedByDesign({ host, mode, cache }: Setup): boolean {
  return (host === "tsup" && mode === "metadata") || (host === "rollup" && cache === "plugin-added");
}
