import { dirname } from "node:path";
import { getTsconfig, type TsConfigJsonResolved } from "get-tsconfig";
import type { PluginOptions } from "../../one-file/options";

/** The tsconfig.json that applies to a file. */
export interface Tsconfig {
  /** The path of the tsconfig.json, or `""` if there is none. */
  readonly path: string;
  readonly content: TsConfigJsonResolved;
  /** The options of our entry in its plugins, so that the defaults of `tspc` also apply here. */
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
