import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { installed } from "../installed";
import type { Files, Finished } from "../project";
import { bundlerNamed, projectOf } from "./bundlers";
import { placeIn } from "./sources";
import { inMatrix, isMatrix, outsideMatrix } from "../../support/suites";

// Installed only in the matrix, since they are too heavy for every test run.

const PAY = `  /** @redisLock businessFlag=pay keyName=orderNo */
  async function pay(orderNo: string): Promise<string> { return orderNo; }
  void pay("A1");
`;

/** The import of each framework's plugin, and a component with a tag. */
const COMPONENTS: Readonly<Record<string, { plugin: string; component: string }>> = {
  vue: {
    plugin: `import component from "@vitejs/plugin-vue";`,
    component: `<template><p>@redisLock in a text</p></template>\n<script setup lang="ts">\n${PAY}</script>\n`,
  },
  svelte: {
    plugin: `import { svelte as component } from "@sveltejs/vite-plugin-svelte";`,
    component: `<p>@redisLock in a text</p>\n<script lang="ts">\n${PAY}</script>\n`,
  },
};

async function build(ending: string, plugin: string, component: string): Promise<Finished> {
  const files: Files = {
    "vite.config.mjs": `import lockweave from "lockweave/vite";
${plugin}
export default {
  plugins: [lockweave(), component()],
  build: { ssr: true, rollupOptions: { input: ["src/main.ts"] } },
};
`,
    "src/main.ts": `import Pay from "./Pay.${ending}";\nconsole.log(Pay);\n`,
    [`src/Pay.${ending}`]: component,
  };
  const vite = bundlerNamed("Vite");
  const project = await projectOf(vite, files);
  if (isMatrix) {
    const modules = await installed("components");
    for (const name of ["vue", "@vitejs", "svelte", "@sveltejs"]) {
      await symlink(join(modules, name), project.path(`node_modules/${name}`));
    }
  }
  return await project.run("node_modules/vite/bin/vite.js", "build", "--config", "vite.config.mjs");
}

function assertRefused(
  t: { is: (a: unknown, b: unknown) => void; true: (a: boolean, message?: string) => void },
  ending: string,
  component: string,
  { code, stdout, stderr }: Finished,
): void {
  const { line, column } = placeIn(component, "@redisLock businessFlag");
  t.is(code, 1);
  const message = `src/Pay.${ending}(${line},${column}): error LW1404: Compilers drop comments in components`;
  t.true((stdout + stderr).includes(message), stdout + stderr);
}

/** Replaces the framework plugins, which are installed only in the matrix. */
const STAND_IN = `const component = () => ({ name: "component", transform: (_, id) => (/\\.(vue|svelte)$/.test(id) ? "export default 1;" : undefined) });`;

for (const [ending, { component }] of Object.entries(COMPONENTS)) {
  outsideMatrix(`Vite: a tag in a .${ending} file is a build error with a stand-in plugin`, async (t) => {
    assertRefused(t, ending, component, await build(ending, STAND_IN, component));
  });
}

for (const [ending, { plugin, component }] of Object.entries(COMPONENTS)) {
  inMatrix(
    `Vite: only a tag in a .${ending} file is a build error with the framework's own plugin`,
    async (t) => {
      assertRefused(t, ending, component, await build(ending, plugin, component));
      const { code, stderr } = await build(
        ending,
        plugin,
        component.replace(/^.*@redisLock business.*\n/m, ""),
      );
      t.is(code, 0, stderr);
    },
  );
}
