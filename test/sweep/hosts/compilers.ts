import { join } from "node:path";
import { entryOf } from "../files";
import { COMPILER, run, runCommand, type Finished } from "../processes";
import { BuildError, type Host, type Place, type Session } from "./session";
import { fileOfTool } from "./tools";

/** Returns a session for a compiler, which weaves if tsconfig.json has the plugin. */
function compiling(place: Place, compile: () => Promise<Finished>, node?: string): Session {
  const { setup } = place;
  return {
    async build() {
      const { code, output } = await compile();
      if (code !== 0) throw new BuildError(output);
    },
    command: () => [`out/${entryOf(setup).replace(/\.([cm]?)tsx?$/, ".$1js")}`],
    ...(node !== undefined && { node }),
  };
}

/** Node 22.18 and later run the TypeScript of a linked package, so a test with Node 20 would prove nothing. */
async function nodeFor({ setup }: Place): Promise<string | undefined> {
  return setup.layout === "linked-source" ? await fileOfTool("node-24", "node/bin/node") : undefined;
}

export const tspc: Host = async (place) =>
  compiling(place, () => runCommand("tspc", place.dir, []), await nodeFor(place));

export const patchedTsc: Host = async (place) => {
  const { dir } = place;
  const tsc = join(dir, "../node_modules/typescript/lib/tsc.js");
  return compiling(place, () => run({ dir, args: [...COMPILER, tsc] }), await nodeFor(place));
};

/** Runs `lockweave build`, or the compiler alone for a build without the plugin. */
export const typescript7: Host = async (place) => {
  const { dir } = place;
  const session = compiling(place, () => runCommand("lockweave", dir, ["build"]), await nodeFor(place));
  return {
    ...session,
    async build(isWoven) {
      if (isWoven) return session.build(true);
      const tsc = join(dir, "../node_modules/typescript/bin/tsc");
      const { code, output } = await run({ dir, args: [tsc] });
      if (code !== 0) throw new BuildError(output);
    },
  };
};
