import { createRequire } from "node:module";
import { join } from "node:path";

// Lockweave's plugins, as users of the built package load them.

type OfEsbuild = typeof import("../../../transformer/hosts/bundlers/esbuild");
type OfRollup = typeof import("../../../transformer/hosts/bundlers/rollup");
type OfWebpack = typeof import("../../../transformer/hosts/bundlers/webpack");

const load = createRequire(join(__dirname, "../../../package.json"));

export const LOADER = load.resolve("lockweave/loader");

export function ofEsbuild(): ReturnType<OfEsbuild> {
  return (load("lockweave/esbuild") as OfEsbuild)();
}

export function ofRollup(): ReturnType<OfRollup> {
  return (load("lockweave/rollup") as OfRollup)();
}

export function ofWebpack(): ReturnType<OfWebpack> {
  return (load("lockweave/webpack") as OfWebpack)();
}
