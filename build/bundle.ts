import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { rolldown, type OutputChunk, type Plugin } from "rolldown";
import { removeUnreachable } from "./declarations";
import { entryFiles, OWN_FILES, wholeModule } from "./entry-files";
import { notices } from "./notices";
import { MESSAGES, messagesModule, typescriptModule } from "./typescript-parts";

// Bundles the compile side into one file for each entry point, together with the third-party code that it uses. So a program that only runs
// needs no package of the compiler, and a compiler loads no file that it does not need.
// The runtime becomes one CommonJS file and one ES module. Without that, half of its start would go to finding, reading, and compiling its
// many modules.

const REPOSITORY = join(__dirname, "..");
const DIST = join(REPOSITORY, "dist");
const COMPILE_SIDE = join(DIST, "transformer");
const RUNTIME = join(DIST, "runtime");
const PARSER = join(COMPILE_SIDE, "parser/typescript.js");
/** The sources of the page that `lockweave ui` serves. */
const PAGE = join(REPOSITORY, "transformer/console/ui/page");
/** The suite for stores. It is among the tests, but part of the package. */
const STORE_CONTRACT = join(DIST, "test/store-contract");
/** The generated module that has all exports of the runtime. No such file exists on disk. */
const WHOLE = join(REPOSITORY, "runtime/whole.ts");
/** The modules that the runtime loads only when an application first uses a quorum or PostgreSQL. */
const LATE = ["quorum/quorum.js", "quorum/redis-member.js", "postgres/open-store.js"].map((file) =>
  join(RUNTIME, "stores", file),
);

/** The packages that the built files load from the application's `node_modules`. All others are bundled. */
const EXTERNAL = [
  "uuid",
  "ioredis",
  "redis",
  "pg",
  "postgres",
  "@opentelemetry/api",
  "typescript",
  "ts-patch",
];

interface Manifest {
  readonly version: string;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
  readonly bin: Readonly<Record<string, string>>;
}

type Written = Pick<OutputChunk, "fileName" | "code" | "moduleIds">;

const manifest = JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8")) as Manifest;

async function main(): Promise<void> {
  const compileSide = [...(await bundleEntries()), ...(await bundleParser())];
  const runtime = [...(await bundleRuntime()), await bundleModule(), ...(await bundleOwnFiles())];
  const chunks = [...compileSide, ...runtime];
  for (const ending of [".js", ".mjs", ".d.mts"])
    for (const file of [COMPILE_SIDE, RUNTIME, STORE_CONTRACT].flatMap((dir) => filesOf(dir, ending)))
      rmSync(file);
  for (const { fileName, code } of chunks) writeFileSync(join(DIST, fileName), code);
  // npx makes a file executable only once, so a later build would take that away in this repository.
  for (const file of Object.values(manifest.bin)) chmodSync(join(REPOSITORY, file), 0o755);
  for (const [name, text] of Object.entries(entryFiles())) writeFileSync(join(RUNTIME, name), text);
  await bundlePage();
  const modules = compileSide.flatMap(({ moduleIds }) => moduleIds);
  writeFileSync(join(COMPILE_SIDE, "THIRD-PARTY-NOTICES.txt"), notices(modules));
  removeUnreachable(DIST, typesOfEntries());
}

/** Bundles every entry point of the compile side that package.json names. */
async function bundleEntries(): Promise<Written[]> {
  const input = Object.fromEntries(entriesOf(COMPILE_SIDE).map((path) => [nameOf(path), path]));
  const isOurs = (id: string): boolean => /^lockweave(?:\/|$)/.test(id);
  const isExternal = (id: string): boolean =>
    EXTERNAL.some((name) => id === name || id.startsWith(`${name}/`));
  const bundle = await rolldown({
    input,
    platform: "node",
    external: (id) => isOurs(id) || isExternal(id),
    plugins: [externalModules(DIST, [PARSER])],
    onLog: fail,
  });
  const { output } = await bundle.generate({
    format: "cjs",
    dir: DIST,
    entryFileNames: "[name].js",
    chunkFileNames: "transformer/[name].js",
  });
  return chunksIn(output).map((chunk) => withPathsTo([PARSER], chunk));
}

/** Bundles the runtime as CommonJS. All entry points share one file, so each module of the runtime exists only once. */
async function bundleRuntime(): Promise<Written[]> {
  const others = [join(STORE_CONTRACT, "index.js"), ...LATE];
  const inputs = [WHOLE, ...others.map((path) => join(REPOSITORY, `${nameOf(path)}.ts`))];
  const bundle = await rolldown({
    input: Object.fromEntries(inputs.map((path) => [path.slice(REPOSITORY.length + 1, -".ts".length), path])),
    platform: "node",
    external: EXTERNAL,
    plugins: [externalModules(REPOSITORY, LATE), generated()],
    transform: { target: "es2022" },
    onLog: fail,
  });
  const { output } = await bundle.generate({
    format: "cjs",
    dir: DIST,
    entryFileNames: "[name].js",
    chunkFileNames: "runtime/[name].js",
    codeSplitting: { groups: [{ name: "runtime", test: WHOLE }] },
  });
  return chunksIn(output)
    .filter(({ facadeModuleId }) => facadeModuleId !== WHOLE)
    .map((chunk) => withPathsTo(LATE, chunk));
}

/** Bundles the runtime as one ES module. There, `x.mts` replaces `x.ts`. */
async function bundleModule(): Promise<OutputChunk> {
  const bundle = await rolldown({
    input: { "runtime/runtime": WHOLE },
    platform: "node",
    external: EXTERNAL,
    plugins: [asModule(), generated()],
    transform: { target: "es2022" },
    resolve: { extensionAlias: { ".js": [".ts"] } },
    onLog: fail,
  });
  const { output } = await bundle.generate({ format: "esm", dir: DIST, entryFileNames: "[name].mjs" });
  const [chunk, ...others] = chunksIn(output);
  if (chunk === undefined || others.length > 0) throw new Error("The ES module is not in one file.");
  return chunk;
}

/** Bundles the entries that `lockweave` does not load, as CommonJS and as ES modules. They import `lockweave` from its entry file. */
async function bundleOwnFiles(): Promise<Written[]> {
  const names = Object.keys(OWN_FILES);
  const commonjs = names.map((name) => bundleOwnFile(name, "cjs", "js"));
  return await Promise.all([...commonjs, ...names.map((name) => bundleOwnFile(name, "esm", "mjs"))]);
}

async function bundleOwnFile(name: string, format: "cjs" | "esm", ending: string): Promise<Written> {
  const resolveId = (id: string) => (id === "./index" ? { id: INDEX, external: true } : undefined);
  const bundle = await rolldown({
    input: { [`runtime/${name}`]: join(REPOSITORY, `runtime/${name}.ts`) },
    platform: "node",
    plugins: [{ name: "index", resolveId }],
    transform: { target: "es2022" },
    onLog: fail,
  });
  const { output } = await bundle.generate({ format, dir: DIST, entryFileNames: `[name].${ending}` });
  const [chunk, ...others] = chunksIn(output);
  if (chunk === undefined || others.length > 0) throw new Error(`runtime/${name}.ts is not in one file.`);
  const { fileName, moduleIds } = chunk;
  const code = chunk.code.replaceAll(JSON.stringify(INDEX), JSON.stringify(`./index.${ending}`));
  return { fileName, moduleIds, code };
}

/** Stands for the entry file of the runtime, because the bundler would write a wrong path. */
const INDEX = "the-runtime";

function asModule(): Plugin {
  return {
    name: "as-module",
    load(id) {
      const module = id.replace(/\.ts$/, ".mts");
      return module !== id && existsSync(module)
        ? { code: readFileSync(module, "utf8"), moduleType: "ts" }
        : undefined;
    },
  };
}

/** Provides the modules whose text the build generates. */
function generated(): Plugin {
  const texts = new Map([
    [WHOLE, wholeModule()],
    [
      join(REPOSITORY, "runtime/base/version.ts"),
      `export const VERSION = ${JSON.stringify(manifest.version)};`,
    ],
  ]);
  return {
    name: "generated",
    resolveId: (id) => (id === WHOLE ? id : undefined),
    load: (id) => texts.get(id),
  };
}

/**
 * Keeps the modules external, as absolute paths. The bundler would write wrong relative paths, so `withPathsTo` replaces them afterwards.
 */
function externalModules(sources: string, modules: readonly string[]): Plugin {
  return {
    name: "apart",
    resolveId(id, importer = "") {
      const path = join(DIST, relative(sources, resolve(dirname(importer), `${id}.js`)));
      return modules.includes(path) ? { id: path, external: "absolute" } : undefined;
    },
  };
}

function withPathsTo(modules: readonly string[], { fileName, code, moduleIds }: OutputChunk): Written {
  const directory = dirname(join(DIST, fileName));
  const written = modules.reduce((before, module) => {
    const path = slashed(relative(directory, module));
    return before.replaceAll(
      JSON.stringify(module),
      JSON.stringify(path.startsWith(".") ? path : `./${path}`),
    );
  }, code);
  return { fileName, moduleIds, code: written };
}

/** Bundles the parts of TypeScript's library that parse a file. */
async function bundleParser(): Promise<Written[]> {
  const library = require.resolve("typescript");
  const parts: Plugin = {
    name: "typescript-parts",
    resolveId: (id) => (id === "typescript" ? library : id === MESSAGES ? `\0${MESSAGES}` : undefined),
    load: (id) =>
      id === library
        ? typescriptModule(library)
        : id === `\0${MESSAGES}`
          ? messagesModule(library)
          : undefined,
  };
  const bundle = await rolldown({
    input: { "transformer/parser/typescript": join(REPOSITORY, "transformer/parser/typescript.ts") },
    platform: "node",
    plugins: [parts],
    treeshake: { propertyReadSideEffects: false, unknownGlobalSideEffects: false },
    onLog: fail,
  });
  const { output } = await bundle.generate({
    format: "cjs",
    dir: DIST,
    entryFileNames: "[name].js",
    minify: true,
    banner:
      "/*! Parts of TypeScript 6.0.3 (Microsoft Corporation, Apache-2.0), cut out and minified. See ../THIRD-PARTY-NOTICES.txt. */",
  });
  return chunksIn(output);
}

async function bundlePage(): Promise<void> {
  const written = join(COMPILE_SIDE, "page");
  const bundle = await rolldown({ input: join(PAGE, "page.ts"), platform: "browser", onLog: fail });
  await bundle.write({ format: "esm", dir: written, entryFileNames: "[name].js" });
  for (const file of ["index.html", "style.css", "icon.svg"])
    copyFileSync(join(PAGE, file), join(written, file));
}

function fail(_level: string, { message }: { readonly message: string }): never {
  throw new Error(message);
}

function chunksIn(output: readonly { readonly type: string }[]): OutputChunk[] {
  return output.filter((file): file is OutputChunk => file.type === "chunk");
}

/** Returns the files in the directory that package.json names as binaries or exports. */
function entriesOf(directory: string): string[] {
  const named = [
    ...Object.values(manifest.bin),
    ...Object.values(manifest.exports).flatMap((target) =>
      typeof target === "string" ? [target] : [target.default],
    ),
  ];
  return [...new Set(named)]
    .map((path) => join(REPOSITORY, path))
    .filter((path) => path.startsWith(directory + sep));
}

/** Returns the declarations that package.json names. */
function typesOfEntries(): string[] {
  const named = Object.values(manifest.exports).flatMap((target) =>
    typeof target === "string" ? [] : [target.types],
  );
  return [...new Set(named)].map((path) => join(REPOSITORY, path));
}

/** Returns the path of a file in `dist` without its extension. Its source has the same path. */
function nameOf(path: string): string {
  return slashed(relative(DIST, path)).replace(/\.js$/, "");
}

function filesOf(dir: string, ending: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(ending))
    .map((file) => join(dir, file));
}

function slashed(path: string): string {
  return path.split(sep).join("/");
}

void main();
