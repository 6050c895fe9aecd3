import { dirname } from "node:path";
import { getTsconfig, type TsConfigJsonResolved } from "get-tsconfig";
import type { PluginOptions } from "../one-file/options";

/** What the nearest tsconfig.json says of a file. */
export interface Tsconfig {
  /** Its path; `""` where there is none. */
  readonly path: string;
  readonly content: TsConfigJsonResolved;
  /** Of our entry among its plugins: what counts under `tspc` counts here. */
  readonly pluginOptions: PluginOptions;
}

const byDirectory = new Map<string, Tsconfig>();

export function tsconfigFor(path: string): Tsconfig {
  const dir = dirname(path);
  let found = byDirectory.get(dir);
  if (found === undefined) byDirectory.set(dir, (found = read(dir)));
  return found;
}

function read(dir: string): Tsconfig {
  const { path, config: content } = getTsconfig(dir) ?? { path: "", config: {} };
  const plugins: unknown = content.compilerOptions?.plugins;
  const entries = (Array.isArray(plugins) ? plugins : []) as readonly Entry[];
  const { defaults } = entries.find(({ transform = "" }) => OURS.has(transform)) ?? {};
  return { path, content, pluginOptions: defaults === undefined ? {} : { defaults } };
}

interface Entry extends PluginOptions {
  readonly transform?: string;
}

const OURS: ReadonlySet<string> = new Set(["lockweave/transformer", "lockweave"]);
