import { isCompiler, type Setup } from "./setup";

/**
 * The expected outcome of a setup. `free` means that its tag was removed, `safe` means locked or refused with a fix, and `gone`
 * means free or refused.
 */
export type Expectation = "locked" | "free" | "safe" | "gone";

export function expectationOf(setup: Setup): Expectation {
  const works = isDocumentedToWork(setup);
  if (setup.cache === "tag-removed") return works ? "free" : "gone";
  return works ? "locked" : "safe";
}

/** Returns whether docs/compilers.md and docs/checking.md promise a program that runs. */
function isDocumentedToWork(setup: Setup): boolean {
  return receivesTag(setup) && weavesLayout(setup) && !isRefusedByDesign(setup);
}

/** Returns whether Lockweave's plugin receives the tag. Hosts that call every plugin get it from one that keeps comments. */
function receivesTag(setup: Setup): boolean {
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
 * Returns whether the setup cannot work. tsup loads each file before its plugins if it emits decorator metadata. Rollup does not
 * call plugins again for modules in its cache.
 */
function isRefusedByDesign({ host, mode, cache }: Setup): boolean {
  return (host === "tsup" && mode === "metadata") || (host === "rollup" && cache === "plugin-added");
}
