import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { installedJest } from "../../hosts/jest/installed-jest";
import { entryOf } from "../files";
import { run } from "../processes";
import type { Setup } from "../setup";
import { BuildError, bundleIn, formatIn, type Host, type Place } from "./session";
import { fileOfTool } from "./tools";

// Hosts that run as commands.

const OTHER_OF_FARM = `import { createRequire } from "node:module";
const require = createRequire(import.meta.url);
`;

function farmConfig(place: Place, isWoven: boolean): string {
  const { setup } = place;
  const others = setup.order.includes("-") ? `...otherOfRollup(${JSON.stringify(setup)}),` : "";
  const other = JSON.stringify(join(__dirname, "other-plugin.ts"));
  return `${OTHER_OF_FARM}
import lockweave from "lockweave/vite";
${others === "" ? "" : `const { otherOfRollup } = require(${other});`}
export default {
  compilation: {
    input: { main: "./${entryOf(setup)}" },
    output: { path: "dist", targetEnv: "node", format: "${formatIn(place)}", entryFilename: "${bundleIn(place).replace("dist/", "")}" },
    external: ["^lockweave"],
    sourcemap: ${setup.mode === "mapped"},
    minify: ${setup.mode === "minified"},
    persistentCache: ${setup.cache !== "cold"},
    progress: false,
  },
  vitePlugins: [${others}${isWoven ? "lockweave()" : ""}],
};
`;
}

const TRANSPILE = join(__dirname, "../../support/transpile.cjs");

export const farm: Host = async (place) => {
  const { dir } = place;
  const cli = await fileOfTool("farm", "@farmfe/cli/bin/farm.mjs");
  return {
    async build(isWoven) {
      await writeFile(join(dir, "farm.config.mjs"), farmConfig(place, isWoven));
      const args = ["--require", TRANSPILE, cli, "build", "--config", "farm.config.mjs"];
      const { code, output } = await run({ dir, args });
      if (code !== 0) throw new BuildError(output);
    },
    command: () => [bundleIn(place)],
  };
};

function jestConfig(setup: Setup, isWoven: boolean): string {
  const transformer = ["ts-jest", { diagnostics: false, tsconfig: "tsconfig.json" }];
  return JSON.stringify({
    testEnvironment: "node",
    rootDir: ".",
    cacheDirectory: "<rootDir>/.cache",
    moduleFileExtensions: ["ts", "mts", "cts", "tsx", "js", "cjs", "mjs", "json"],
    moduleNameMapper: setup.layout === "paths" ? { "^shop$": "<rootDir>/packages/shop/src/shop" } : {},
    testMatch: ["<rootDir>/src/main.test.*"],
    transform: { [String.raw`\.[cm]?[jt]sx?$`]: isWoven ? ["lockweave/jest", { transformer }] : transformer },
  });
}

/** Jest compiles a file when it loads it, and caches the result. */
export const jest: Host = async ({ dir, setup }) => {
  await installedJest();
  const write = (isWoven: boolean): Promise<void> =>
    writeFile(join(dir, "jest.config.json"), jestConfig(setup, isWoven));
  return {
    build: write,
    command: () => ["../node_modules/jest/bin/jest.js", "--config", "jest.config.json", "--runInBand"],
  };
};
