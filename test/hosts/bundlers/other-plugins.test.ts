import { readFile, symlink } from "node:fs/promises";
import test from "ava";
import { inMatrix, outsideMatrix } from "../../support/suites";
import * as esbuild from "esbuild";
import { rolldown } from "rolldown";
import { rollup, type RollupOptions } from "rollup";
import { transpileModule, ModuleKind } from "typescript";
import viaEsbuildPlugin from "rollup-plugin-esbuild";
import { build as viteBuild, createServer } from "vite";
import ofEsbuild = require("../../../transformer/hosts/bundlers/esbuild");
import ofRollup = require("../../../transformer/hosts/bundlers/rollup");
import { tagsLostFrom } from "../../../transformer/hosts/bundlers/lost-tags";
import { makeProject, type Project } from "../project";

// Other plugins that load a tagged file before Lockweave. The build either contains the locks or fails.

const FILES = {
  "src/main.ts": `import { pay } from "./pay.js";\nexport { pay };\n`,
  "src/pay.ts": `import "@redis/client";
/** @redisLock businessFlag=pay keyName=id */
export async function pay(id: string): Promise<string> {
  return id;
}
`,
};

const viaEsbuild = viaEsbuildPlugin({ target: "es2022" });

/** Whether the JavaScript that the other plugin returns has its comments. */
type Kind = "keeps comments" | "removes comments";

function compiled(text: string, kind: Kind): string {
  const compilerOptions = { module: ModuleKind.ESNext, removeComments: kind === "removes comments" };
  return transpileModule(text, { compilerOptions }).outputText;
}

type Order = "before Lockweave" | "after Lockweave";

const KINDS: readonly Kind[] = ["keeps comments", "removes comments"];
const ORDERS: readonly Order[] = ["before Lockweave", "after Lockweave"];

function ordered<Other, Ours>(order: Order, other: Other, ours: Ours): (Other | Ours)[] {
  return order === "before Lockweave" ? [other, ours] : [ours, other];
}

/** Functions that build `src/main.ts` and return the code. */
const HOSTS: Readonly<Record<string, (project: Project, kind: Kind, order: Order) => Promise<string>>> = {
  async rollup(project, kind, order) {
    const bundle = await rollup({
      input: project.path("src/main.ts"),
      plugins: ordered(order, loading(project, kind), ofRollup()),
      external: ["@redis/client", /^lockweave/],
      logLevel: "silent",
    });
    return (await bundle.generate({ format: "es" })).output[0].code;
  },
  async rolldown(project, kind, order) {
    const bundle = await rolldown({
      input: project.path("src/main.ts"),
      plugins: ordered(order, loading(project, kind), ofRollup()),
      external: ["@redis/client", /^lockweave/],
      logLevel: "silent",
    });
    return (await bundle.generate({ format: "es" })).output[0].code;
  },
  async vite(project, kind, order) {
    const built = await viteBuild({
      root: project.dir,
      configFile: false,
      logLevel: "silent",
      plugins: ordered(order, loading(project, kind), ofRollup()),
      build: {
        write: false,
        minify: false,
        lib: { entry: project.path("src/main.ts"), formats: ["es"] },
        rollupOptions: { external: ["@redis/client", /^lockweave/] },
      },
    });
    const [first] = Array.isArray(built) ? built : [built];
    return first !== undefined && "output" in first ? first.output[0].code : "";
  },
  async esbuild(project, kind, order) {
    const { outputFiles } = await esbuild.build({
      ...ESBUILD,
      entryPoints: [project.path("src/main.ts")],
      absWorkingDir: project.dir,
      plugins: ordered(order, loadingInEsbuild(kind), ofEsbuild()),
    });
    return outputFiles[0]?.text ?? "";
  },
};

const UNBUNDLED = { format: "esm", platform: "node", write: false, logLevel: "silent" } as const;
const ESBUILD = { ...UNBUNDLED, bundle: true, packages: "external" } as const;

function loading(project: Project, kind: Kind): { name: string; resolveId: Resolve; load: Load } {
  return {
    name: "other",
    resolveId: (id) => (id === "./pay.js" ? project.path("src/pay.ts") : undefined),
    load: async (id) =>
      id.endsWith("pay.ts") ? compiled(await project.read("src/pay.ts"), kind) : undefined,
  };
}

type Resolve = (id: string) => string | undefined;
type Load = (id: string) => Promise<string | undefined>;

function loadingInEsbuild(kind: Kind, namespace = "file"): esbuild.Plugin {
  return {
    name: "other",
    setup({ onResolve, onLoad, resolve }) {
      if (namespace !== "file") {
        onResolve({ filter: /pay\.js$/ }, async ({ path, resolveDir, kind: by, pluginData }) => {
          if (pluginData === "resolved") return undefined;
          const found = await resolve(path, { resolveDir, kind: by, pluginData: "resolved" });
          return { path: found.path, namespace, pluginData: resolveDir };
        });
      }
      onLoad({ filter: /pay\.ts$/, namespace }, async ({ path }) => {
        const text = await readFile(path, "utf8");
        return { contents: compiled(text, kind), loader: "js", resolveDir: "/" };
      });
    },
  };
}

/** Returns whether the build contains the lock, lacks it, or fails with the error for the lost tag. */
async function outcomeOf(build: Promise<string>): Promise<string> {
  return await build.then(
    (code) => (/lockweave\.acquire\(/.test(code) ? "locked" : "UNLOCKED"),
    (error: unknown) => {
      const message = String(error instanceof Error ? error.message : error);
      return /pay\.ts\b[^]*LW1404: `pay`/.test(message) ? "error" : `another error: ${message}`;
    },
  );
}

for (const [host, build] of Object.entries(HOSTS)) {
  for (const kind of KINDS) {
    for (const order of ORDERS) {
      // The other hosts ask their plugins as Rollup does.
      const inSuite = host === "esbuild" || host === "rollup" ? outsideMatrix : inMatrix;
      inSuite(
        `${host}: a plugin ${order} that loads a file and ${kind} leaves no function unlocked`,
        async (t) => {
          const outcome = await outcomeOf(build(await makeProject(FILES), kind, order));
          // esbuild asks only the first plugin. The other hosts ask each plugin, in any order.
          const isSeen = host === "esbuild" ? order === "after Lockweave" : kind === "keeps comments";
          t.is(outcome, isSeen ? "locked" : "error");
        },
      );
    }
  }
}

async function esbuilt(options: esbuild.BuildOptions, files = FILES): Promise<esbuild.BuildResult> {
  const project = await makeProject(files);
  return await esbuild.build({
    ...ESBUILD,
    entryPoints: [project.path("src/main.ts")],
    absWorkingDir: project.dir,
    ...options,
  });
}

test("esbuild: a file in another plugin's namespace is an error", async (t) => {
  for (const plugins of [
    [loadingInEsbuild("keeps comments", "other"), ofEsbuild()],
    [ofEsbuild(), loadingInEsbuild("keeps comments", "other")],
  ])
    await t.throwsAsync(esbuilt({ plugins }), { message: /src\/pay\.ts:2:4: ERROR: .*LW1404: `pay` / });
});

test("esbuild: reports the error whether or not the build writes files, minifies, or bundles", async (t) => {
  const plugins = [loadingInEsbuild("removes comments"), ofEsbuild()];
  const ways: readonly esbuild.BuildOptions[] = [
    { write: true, outdir: "dist" },
    { write: true, outfile: "dist/main.js", metafile: false, minify: true },
    { splitting: true, outdir: "dist", sourcemap: "inline" },
  ];
  for (const way of ways) await t.throwsAsync(esbuilt({ plugins, ...way }), { message: /LW1404: `pay` / });
  const project = await makeProject(FILES);
  const unbundled = esbuild.build({ ...UNBUNDLED, plugins, entryPoints: [project.path("src/pay.ts")] });
  await t.throwsAsync(unbundled, { message: /LW1404: `pay` / });
});

test("esbuild: contents from stdin that only have the name of a tagged file need no lock", async (t) => {
  const { outputFiles = [] } = await esbuilt({
    stdin: { contents: "console.log(1);", sourcefile: "src/pay.ts", resolveDir: "src" },
    entryPoints: [],
    plugins: [ofEsbuild()],
  });
  t.regex(outputFiles[0]?.text ?? "", /console\.log\(1\)/);
});

test("esbuild: a tagged file that leaves no code in the output needs no lock", async (t) => {
  const plugins = [loadingInEsbuild("removes comments"), ofEsbuild()];
  const files = {
    "src/main.ts": `import { pay } from "./pay.js";\nexport const a = 1;\n`,
    "src/pay.ts": FILES["src/pay.ts"].replace(/^import.*\n/, ""),
  };
  t.deepEqual((await esbuilt({ plugins }, files)).errors, []);
});

test("esbuild: locks in the output prove that another plugin wove the file", async (t) => {
  const project = await makeProject(FILES);
  const { outputFiles } = await esbuild.build({
    ...UNBUNDLED,
    entryPoints: [project.path("src/pay.ts")],
    plugins: [ofEsbuild()],
  });
  const woven = outputFiles[0]?.text ?? "";
  const other: esbuild.Plugin = {
    name: "other",
    setup({ onLoad }) {
      onLoad({ filter: /pay\.ts$/ }, () => ({ contents: woven, loader: "js" }));
    },
  };
  for (const minify of [false, true]) {
    const { errors } = await esbuilt({ plugins: [other, ofEsbuild()], minify });
    t.deepEqual(errors, []);
  }
});

test("esbuild: each rebuild reports the error again until the tag is removed", async (t) => {
  const project = await makeProject(FILES);
  const context = await esbuild.context({
    ...ESBUILD,
    entryPoints: [project.path("src/main.ts")],
    absWorkingDir: project.dir,
    plugins: [loadingInEsbuild("removes comments"), ofEsbuild()],
  });
  try {
    for (const _ of ["first", "second"]) await t.throwsAsync(context.rebuild(), { message: /LW1404/ });
    await project.write({ "src/pay.ts": FILES["src/pay.ts"].replace("@redisLock", "@see") });
    await t.notThrowsAsync(context.rebuild());
  } finally {
    await context.dispose();
  }
});

test("Rollup: a plugin that loads a tagged file under its own ID is an error", async (t) => {
  const project = await makeProject(FILES);
  const built = (kind: Kind): Promise<unknown> =>
    rollup({
      input: project.path("src/main.ts"),
      plugins: [
        {
          name: "other",
          resolveId: (id) => (id === "./pay.js" ? `\0other:${project.path("src/pay.ts")}` : undefined),
          load: async (id) =>
            id.startsWith("\0") ? compiled(await project.read("src/pay.ts"), kind) : undefined,
        },
        ofRollup(),
      ],
      external: ["@redis/client", /^lockweave/],
      logLevel: "silent",
    });
  for (const kind of KINDS) await t.throwsAsync(built(kind), { message: /LW1404: `pay` / });
});

test("Rollup: a plugin's proxy module whose ID contains the path of a tagged file needs no lock", async (t) => {
  const project = await makeProject(FILES);
  const path = project.path("src/pay.ts");
  const proxy = {
    name: "proxy",
    resolveId: (id: string) => (id === "./pay.js" ? `\0${path}?proxy` : undefined),
    load: (id: string) =>
      id.startsWith("\0")
        ? `export { pay } from ${JSON.stringify(path)};\nexport function interop(module) { return module; }`
        : undefined,
  };
  const bundle = await rollup({
    input: project.path("src/main.ts"),
    plugins: [proxy, ofRollup(), viaEsbuild],
    external: ["@redis/client", /^lockweave/],
    logLevel: "silent",
  });
  t.regex((await bundle.generate({ format: "es" })).output[0].code, /lockweave\.acquire\(/);
});

test("Rollup: cached modules of a build without the plugin are an error", async (t) => {
  const project = await makeProject(FILES);
  const input = {
    input: project.path("src/main.ts"),
    external: ["@redis/client", /^lockweave/],
    logLevel: "silent" as const,
  } satisfies RollupOptions;
  const resolving = {
    name: "resolving",
    resolveId: (id: string) => (id === "./pay.js" ? project.path("src/pay.ts") : null),
  };
  const { cache } = await rollup({ ...input, plugins: [resolving, viaEsbuild] });
  const plugins = [resolving, ofRollup(), viaEsbuild];
  await t.throwsAsync(rollup({ ...input, plugins, cache: cache ?? false }), { message: /LW1404: `pay` / });
});

test("Rollup: a cached module with a new tag is an error if another plugin removes the comments", async (t) => {
  const project = await makeProject(FILES);
  const text = FILES["src/pay.ts"];
  const plugins = [loading(project, "removes comments"), ofRollup()];
  const built = (cache: RollupOptions["cache"]): ReturnType<typeof rollup> =>
    rollup({
      input: project.path("src/main.ts"),
      external: ["@redis/client", /^lockweave/],
      logLevel: "silent",
      plugins,
      ...(cache !== undefined && { cache }),
    });
  await project.write({ "src/pay.ts": text.replace("@redisLock", "@see") });
  const { cache } = await built(undefined);
  await project.write({ "src/pay.ts": text });
  await t.throwsAsync(built(cache), { message: /src\/pay\.ts\(2,5\): error LW1404: `pay` / });
});

test("Rollup: a cached woven module keeps its lock in the next build", async (t) => {
  const project = await makeProject(FILES);
  const plugins = [loading(project, "keeps comments"), ofRollup(), viaEsbuild];
  const input = { input: project.path("src/main.ts"), external: ["@redis/client", /^lockweave/], plugins };
  const { cache } = await rollup(input);
  const again = await rollup({ ...input, cache: cache ?? false });
  t.regex((await again.generate({ format: "es" })).output[0].code, /lockweave\.acquire\(/);
});

test("Vite: a development server rejects a file under another plugin's ID, and closes without an error", async (t) => {
  const project = await makeProject(FILES);
  const id = `\0other:${project.path("src/pay.ts")}`;
  const server = await createServer({
    root: project.dir,
    configFile: false,
    logLevel: "silent",
    server: { middlewareMode: true, ws: false },
    optimizeDeps: { noDiscovery: true },
    plugins: [
      {
        name: "other",
        enforce: "pre",
        resolveId: (asked) => (asked === "./pay.js" ? id : undefined),
        load: async (asked) =>
          asked === id ? compiled(await project.read("src/pay.ts"), "keeps comments") : undefined,
      },
      ofRollup(),
    ],
  });
  try {
    await t.throwsAsync(server.ssrLoadModule(project.path("src/main.ts")), { message: /LW1404: `pay` / });
  } finally {
    await t.notThrowsAsync(server.close());
  }
});

/** Functions that build `src/main.ts` with Lockweave's plugin first, with or without resolving links. */
const BUILDS = {
  async Rollup(project: Project, other: OtherPlugin, preserveSymlinks: boolean) {
    const bundle = await rollup({
      input: project.path("src/main.ts"),
      plugins: [ofRollup(), other, viaEsbuild],
      external: /^lockweave/,
      logLevel: "silent",
      preserveSymlinks,
    });
    return (await bundle.generate({ format: "es" })).output[0].code;
  },
  async Rolldown(project: Project, other: OtherPlugin, keepsLinks: boolean) {
    const bundle = await rolldown({
      input: project.path("src/main.ts"),
      plugins: [ofRollup(), other],
      external: /^lockweave/,
      logLevel: "silent",
      resolve: { symlinks: !keepsLinks },
    });
    return (await bundle.generate({ format: "es" })).output[0].code;
  },
  async Vite(project: Project, other: OtherPlugin, preserveSymlinks: boolean) {
    const built = await viteBuild({
      root: project.dir,
      configFile: false,
      logLevel: "silent",
      plugins: [ofRollup(), other],
      resolve: { preserveSymlinks },
      ssr: { noExternal: ["acme-pay"] },
      build: {
        write: false,
        minify: false,
        ssr: project.path("src/main.ts"),
        rollupOptions: { external: /^lockweave/ },
      },
    });
    const [first] = Array.isArray(built) ? built : [built];
    return first !== undefined && "output" in first ? first.output[0].code : "";
  },
} satisfies Readonly<
  Record<string, (project: Project, other: OtherPlugin, keepsLinks: boolean) => Promise<string>>
>;

interface OtherPlugin {
  readonly name: string;
  readonly resolveId?: (id: string) => string | undefined;
  readonly load?: (id: string) => string | undefined;
}

const VIRTUAL = `/** @redisLock businessFlag=pay keyName=id */\nexport async function pay(id) { return id; }\n`;

for (const [host, build] of Object.entries(BUILDS)) {
  test(`${host}: a tag in another plugin's virtual module is woven, or an error`, async (t) => {
    const project = await makeProject({ "src/main.ts": `export { pay } from "virtual:pay";\n` });
    const built = (id: string, code = VIRTUAL): Promise<string> =>
      build(
        project,
        {
          name: "other",
          resolveId: (asked) => (asked === "virtual:pay" ? id : undefined),
          load: (asked) => (asked === id ? code : undefined),
        },
        false,
      );
    t.regex(await built("virtual:pay.js"), /lockweave\.acquire\(/);
    for (const id of ["virtual:pay", "\0virtual:pay", "\0virtual:pay.js"]) {
      await t.throwsAsync(built(id), {
        message: /pay(?:\.js)?\(1,5\): error LW1404: `pay` .*give this module an ID/,
      });
      await t.throwsAsync(built(id, VIRTUAL.replace("redisLock", "RedisLock")), { message: /LW1007/ });
      t.regex(await built(id, `export const pay = ${JSON.stringify(VIRTUAL)};`), /redisLock/);
    }
  });

  test(`${host}: a linked package is woven, even under the path of its link`, async (t) => {
    const project = await withLinkedPackage();
    for (const keepsLinks of [false, true]) {
      const resolving = {
        name: "other",
        resolveId: (id: string) =>
          id === "acme-pay"
            ? project.path(`${keepsLinks ? "node_modules/acme-pay" : "packages/pay"}/index.ts`)
            : undefined,
      };
      t.regex(await build(project, resolving, keepsLinks), /lockweave\.acquire\(/);
    }
  });
}

async function withLinkedPackage(): Promise<Project> {
  const project = await makeProject({
    "src/main.ts": `export { pay } from "acme-pay";\n`,
    "packages/pay/package.json": '{ "name": "acme-pay", "type": "module", "exports": "./index.ts" }',
    "packages/pay/index.ts": VIRTUAL,
  });
  await symlink(project.path("packages/pay"), project.path("node_modules/acme-pay"));
  return project;
}

test("Rollup: a linked package that a plugin resolves to its link is an error that names the fix", async (t) => {
  const project = await withLinkedPackage();
  const resolving = {
    name: "other",
    resolveId: (id: string) =>
      id === "acme-pay" ? project.path("node_modules/acme-pay/index.ts") : undefined,
  };
  const message = /acme-pay\/index\.ts\(1,5\): error LW1404: `pay` .*without `preserveSymlinks`/;
  await t.throwsAsync(BUILDS.Rollup(project, resolving, false), { message });
});

test("esbuild: a linked package is woven, even under the path of its link", async (t) => {
  const project = await withLinkedPackage();
  for (const preserveSymlinks of [false, true]) {
    const { outputFiles } = await esbuild.build({
      ...UNBUNDLED,
      bundle: true,
      external: ["lockweave"],
      entryPoints: [project.path("src/main.ts")],
      absWorkingDir: project.dir,
      preserveSymlinks,
      plugins: [ofEsbuild()],
    });
    t.regex(outputFiles[0]?.text ?? "", /lockweave\.acquire\(/);
  }
});

// Compiled or replaced contents of a tagged file.
for (const [title, tagged, code, isLost] of [
  [
    "a minified function counts under its export",
    "export async function pay() {}",
    "async function a(){}export{a as pay};",
    true,
  ],
  [
    "a minified function counts under its property of exports",
    "export async function pay() {}",
    "const a=async()=>{};exports.pay=a;",
    true,
  ],
  [
    "a private method counts under the names that compilers give it",
    "export class A { @ async #pay() {} }",
    "var pay_fn = async function () {};",
    true,
  ],
  [
    "a function without a name counts if there is any function",
    "export default async function () {}",
    "export default async () => {};",
    true,
  ],
  [
    "a method of a renamed class keeps its tag",
    "export class A { @ async pay() {} }",
    "class _A { @ async pay() {} }",
    false,
  ],
  [
    "one of two methods of one name loses its tag",
    "export class A { @ async pay() {} }\nexport class B { @ async pay() {} }",
    "export class A { @ async pay() {} }\nexport class B { async pay() {} }",
    true,
  ],
  [
    "a reference to a server function does not count as the function",
    "export async function pay() {}",
    "const pay = reference('pay'); const all = [() => 1]; export { pay };",
    false,
  ],
] as const) {
  test(`tags lost from replaced contents: ${title}`, async (t) => {
    const tag = "/** @redisLock businessFlag=pay */";
    const source = tagged.includes("@") ? tagged.replaceAll("@", tag) : `${tag}\n${tagged}`;
    const project = await makeProject({ "src/pay.ts": source });
    const lost = tagsLostFrom(project.path("src/pay.ts"), code.replaceAll("@", tag));
    t.is(lost.length, isLost ? 1 : 0);
  });
}
