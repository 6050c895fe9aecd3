import type { Setup } from "../setup";
import { node, tsNode, tsNodeTranspile, tsx } from "./at-run";
import { patchedTsc, tspc, typescript7 } from "./compilers";
import { esbuild } from "./esbuild";
import { farm, jest } from "./farm-and-jest";
import { tsdown, tsup } from "./libraries";
import { rolldown, rollup, vite } from "./rollup";
import type { Host } from "./session";
import { webpackLike } from "./webpack";

export const HOSTS: Readonly<Record<Setup["host"], Host>> = {
  tspc,
  "patched-tsc": patchedTsc,
  "typescript-7": typescript7,
  "ts-node": tsNode,
  "ts-node-transpile": tsNodeTranspile,
  tsx,
  node,
  esbuild,
  rollup,
  rolldown,
  vite,
  webpack: webpackLike,
  "webpack-loader": webpackLike,
  rspack: webpackLike,
  tsup,
  tsdown,
  farm,
  jest,
};
