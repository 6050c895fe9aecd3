import { symlink } from "node:fs/promises";
import { bundle, bundlerNamed, projectOf } from "./bundlers";
import { recipe } from "./recipes";
import type { Files, Finished, Project } from "../project";
import { inMatrix } from "../../support/suites";

// Other loaders of webpack and Rspack that process a tagged file before Lockweave or instead of it.

// They run only in the matrix, since they are too heavy for every test run.

const PAY = `/** @redisLock businessFlag=pay keyName=id */
export async function pay(id: string): Promise<string> {
  return id;
}
`;

const LOADERS: Files = {
  "strip.cjs": String.raw`module.exports = (text) => text.replace(/\/\*[^]*?\*\//g, "");`,
  "raw.cjs": "module.exports = (text) => 'export const pay = ' + JSON.stringify(text);",
};

const HOSTS = [
  { name: "webpack", compiles: `ts-loader?{"transpileOnly":true}`, cache: `{ type: "filesystem" }` },
  {
    name: "Rspack",
    compiles: `builtin:swc-loader?{"jsc":{"parser":{"syntax":"typescript"}}}`,
    cache: `{ type: "persistent" }`,
  },
];

/** Creates a project whose `src/main.ts` imports `pay` by this request. */
async function requesting(
  name: string,
  request: string,
  config?: (text: string) => string,
): Promise<Project> {
  const project = await projectOf(bundlerNamed(name), {
    "src/main.ts": `import { pay } from ${JSON.stringify(request)};\nconsole.log(pay);\n`,
    "src/pay.ts": PAY,
    "tsconfig.json": "{}",
    ...LOADERS,
  });
  const { file, text } = recipe(name);
  if (config !== undefined) await project.write({ [file]: config(text) });
  return project;
}

async function built(name: string, project: Project): Promise<Finished & { readonly output: string }> {
  const finished = await bundle(project, bundlerNamed(name));
  return { ...finished, output: finished.stdout + finished.stderr };
}

for (const { name, compiles, cache } of HOSTS) {
  inMatrix(`${name}: a request that bypasses the configured loaders is an error`, async (t) => {
    for (const request of [`!!${compiles}!./pay.ts`, `-!${compiles}!./pay.ts`]) {
      const { code, output } = await built(name, await requesting(name, request));
      t.is(code, 1, output);
      t.regex(output, /src\/pay\.ts\(1,5\): error LW1404: `pay` would run without its lock\. .*Fix: /);
    }
  });

  inMatrix(`${name}: a request with ?raw is an error if the configuration compiles it`, async (t) => {
    const { code, output } = await built(name, await requesting(name, "./pay.ts?raw"));
    t.is(code, 1, output);
    t.regex(output, /LW1404: `pay` would run without its lock\. .*Fix: import the file without `\?raw`/);
    const asText = await requesting(name, "./pay.ts?raw", (text) =>
      text
        .replace("rules: [", `rules: [{ resourceQuery: /raw/, type: "asset/source" },`)
        .replace("test: /", "resourceQuery: { not: /raw/ }, test: /"),
    );
    await asText.write({ "src/main.ts": `import text from "./pay.ts?raw";\nconsole.log(text);\n` });
    const ofText = await built(name, asText);
    t.is(ofText.code, 0, ofText.output);
  });

  inMatrix(`${name}: a file that a request loads as text needs no lock`, async (t) => {
    const { code, output } = await built(name, await requesting(name, "!!../raw.cjs!./pay.ts"));
    t.is(code, 0, output);
  });

  inMatrix(`${name}: a loader that removes comments before Lockweave is an error`, async (t) => {
    const project = await requesting(name, "./pay.js", (text) =>
      text.replace(/rules: \[/, `rules: [{ test: /pay/, enforce: "pre", loader: "./strip.cjs" },`),
    );
    const { code, output } = await built(name, project);
    t.is(code, 1, output);
    t.regex(output, /LW1404: `pay` would run without its lock\. Another plugin/);
  });

  inMatrix(`${name}: a linked package, CommonJS, and an id with a fragment are woven`, async (t) => {
    const project = await requesting(name, "acme-pay", (text) =>
      text.replace("resolve: {", "resolve: { symlinks: false,"),
    );
    const tagged = (flag: string): string =>
      PAY.replace("=pay", `=${flag}`).replaceAll(/: (?:Promise<)?string>?/g, "");
    await project.write({
      "src/main.ts": `import { pay } from "acme-pay";
import { pay as refund } from "./refund.cjs";
import { pay as ship } from "./ship.js#top";
import { configure, memoryStore, shutdown } from "lockweave";
configure({ store: memoryStore() });
for (const each of [pay, refund, ship]) console.log(await each("A1"));
await shutdown();
`,
      "src/refund.cjs": `${tagged("refund").replace("export ", "")}module.exports = { pay };\n`,
      "src/ship.js": tagged("ship"),
      "packages/pay/package.json": '{ "name": "acme-pay", "type": "module", "exports": "./index.js" }',
      "packages/pay/index.js": tagged("pay"),
    });
    await symlink(project.path("packages/pay"), project.path("node_modules/acme-pay"));
    const { code, output } = await built(name, project);
    t.is(code, 0, output);
    const flags = (await project.read("dist/main.mjs")).match(/(?<=businessFlag: ")\w+(?=")/g) ?? [];
    t.deepEqual(flags.toSorted(), ["pay", "refund", "ship"]);
    const { stdout, stderr } = await project.run("dist/main.mjs");
    t.is(stdout, "A1\n".repeat(3), stderr);
  });

  inMatrix(`${name}: changed defaults invalidate the cache on disk`, async (t) => {
    // The hosts build again if the configuration changes, but not if a file that it reads changes.
    const project = await requesting(name, "./pay.js", (text) =>
      text
        .replace(/^/, `import { readFileSync } from "node:fs";\n`)
        .replace("lockweave()", `lockweave(JSON.parse(readFileSync("lockweave.json", "utf8")))`)
        .replace("entry:", `cache: ${cache}, entry:`),
    );
    for (const lockTime of [11, 22]) {
      await project.write({ "lockweave.json": JSON.stringify({ defaults: { lockTime } }) });
      const { code, output } = await built(name, project);
      t.is(code, 0, output);
      t.regex(await project.read("dist/main.mjs"), new RegExp(`lockTime: "?${lockTime}`));
    }
  });
}

inMatrix("tsup: a tagged file that its decorator metadata plugin loads first is an error", async (t) => {
  const tsup = bundlerNamed("tsup");
  const project = await projectOf(tsup, {
    "src/main.ts": `export { pay } from "./pay";\n`,
    "src/pay.ts": PAY,
    "tsconfig.json": `{ "compilerOptions": { "experimentalDecorators": true, "emitDecoratorMetadata": true } }`,
  });
  const { code, output } = await built("tsup", project);
  t.is(code, 1, output);
  t.regex(output, /LW1404: `pay` would run without its lock\. Lockweave's plugin never received this file/);
});
