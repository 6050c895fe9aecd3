import { tsconfig, type Files } from "../project";
import { BUNDLERS, projectOf } from "./bundlers";
import { inMatrix } from "../../support/suites";

/** The type of each host's plugins. */
const TYPES: Readonly<Record<string, string>> = {
  vite: `import type { Plugin } from "vite";`,
  rollup: `import type { Plugin } from "rollup";`,
  rolldown: `import type { Plugin } from "rolldown";`,
  esbuild: `import type { Plugin } from "esbuild";`,
  webpack: `import type { WebpackPluginInstance as Plugin } from "webpack";`,
  rspack: `import type { RspackPluginInstance as Plugin } from "@rspack/core";`,
};

const sources: Files = Object.fromEntries(
  Object.entries(TYPES).map(([entry, type]) => [
    `src/${entry}.mts`,
    `${type}
import lockweave from "lockweave/${entry}";

export const plugin: Plugin = lockweave({ defaults: { lockTime: "20s" } });
// @ts-expect-error -- There is no such option: the options are not any.
lockweave({ default: {} });
// @ts-expect-error -- Nor here.
export const other: number = lockweave();
`,
  ]),
);

inMatrix("each plugin has the plugin type of its host", async (t) => {
  t.timeout(300_000);
  const hosts = BUNDLERS.filter(({ name }) => name.toLowerCase() in TYPES);
  const packages = hosts.flatMap((host) => host.packages ?? []);
  const sets = hosts.flatMap((host) => host.sets ?? []);
  const project = await projectOf(
    { name: "esbuild", packages, sets },
    {
      ...sources,
      "tsconfig.json": tsconfig({ noEmit: true, types: ["node"], exactOptionalPropertyTypes: true }),
    },
  );
  t.like(await project.tsc(), { code: 0, stdout: "" });
});
