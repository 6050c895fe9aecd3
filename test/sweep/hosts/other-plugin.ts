import { readFile } from "node:fs/promises";
import { ModuleKind, ScriptTarget, transpileModule } from "typescript";
import type { Setup } from "../setup";

/** Matches the files that the other plugin handles: the tagged file, and its compiled form in a package. */
export const TAGGED = /^(?!.*[\\/]node_modules[\\/]).*[\\/](?:shop|main(?:\.test)?)\.[cm]?[jt]sx?$/;

/** Returns the JavaScript that the other plugin compiles, with or without comments. */
export function compiled({ order }: Setup, path: string, text: string): string {
  const compilerOptions = {
    module: ModuleKind.ESNext,
    target: ScriptTarget.ES2022,
    experimentalDecorators: true,
    removeComments: order.endsWith("stripping"),
  };
  return transpileModule(text, { fileName: path.replace(/\.[cm](?=[jt]s$)/, "."), compilerOptions })
    .outputText;
}

interface RollupPlugin {
  readonly name: string;
  readonly enforce?: "pre";
  readonly load?: (id: string) => Promise<string | undefined>;
  readonly transform?: {
    readonly order: "pre";
    handler(text: string, id: string): { code: string; map: null } | undefined;
  };
}

/** The other plugin of Rollup, Rolldown, Vite, or Farm, if the setup has one. */
export function otherOfRollup(setup: Setup): RollupPlugin[] {
  const { order } = setup;
  if (order.startsWith("loads")) {
    const load = async (id: string): Promise<string | undefined> =>
      TAGGED.test(id) ? compiled(setup, id, await readFile(id, "utf8")) : undefined;
    return [{ name: "other", enforce: "pre", load }];
  }
  if (!order.startsWith("transforms")) return [];
  const handler = (text: string, id: string): { code: string; map: null } | undefined =>
    TAGGED.test(id) ? { code: compiled(setup, id, text), map: null } : undefined;
  return [{ name: "other", enforce: "pre", transform: { order: "pre", handler } }];
}
