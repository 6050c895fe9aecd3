import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { rolldown, type OutputChunk, type Plugin } from "rolldown";
import { removeUnreachable } from "./declarations";
import { notices } from "./notices";
import { MESSAGES, messagesModule, typescriptModule } from "./typescript-parts";

// What the compile side is made of, in as few files as there are ways in, with what it takes of other packages. So who
// runs a program installs nothing that only its compiler needs, and who compiles one loads no file that it does not need.

const REPOSITORY = join(__dirname, "..");
const DIST = join(REPOSITORY, "dist");
const COMPILE_SIDE = join(DIST, "transformer");
const PARSER = join(COMPILE_SIDE, "parser/typescript.js");

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  readonly bin: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

type Written = Pick<OutputChunk, "fileName" | "code" | "moduleIds">;

const manifest = JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8")) as Manifest;

async function main(): Promise<void> {
  const chunks = [...(await bundleEntries()), ...(await bundleParser())];
  for (const file of filesOf(COMPILE_SIDE, ".js")) rmSync(file);
  for (const { fileName, code } of chunks) writeFileSync(join(DIST, fileName), code);
  const modules = chunks.flatMap(({ moduleIds }) => moduleIds);
  writeFileSync(join(COMPILE_SIDE, "THIRD-PARTY-NOTICES.txt"), notices(modules));
  removeUnreachable(DIST, entriesOf(".d.ts"));
}

/** Every way into the compile side that package.json has. */
async function bundleEntries(): Promise<Written[]> {
  const input = Object.fromEntries(
    entriesOf(".js").map((path) => [slashed(relative(DIST, path)).replace(/\.js$/, ""), path]),
  );
  const isOurs = (id: string): boolean => /^lockweave(?:\/|$)/.test(id);
  const isPeer = (id: string): boolean =>
    Object.keys(manifest.peerDependencies).some((name) => id === name || id.startsWith(`${name}/`));
  // The bundler takes it as it is, and would write a wrong path.
  const apart: Plugin = {
    name: "parser-apart",
    resolveId: (id, importer = "") =>
      resolve(dirname(importer), `${id}.js`) === PARSER ? { id: PARSER, external: "absolute" } : undefined,
  };
  const bundle = await rolldown({
    input,
    platform: "node",
    external: (id) => isOurs(id) || isPeer(id),
    plugins: [apart],
    onLog: fail,
  });
  const { output } = await bundle.generate({
    format: "cjs",
    dir: DIST,
    entryFileNames: "[name].js",
    chunkFileNames: "transformer/[name].js",
  });
  return chunksIn(output).map(({ fileName, code, moduleIds }) => {
    const path = slashed(relative(dirname(join(DIST, fileName)), PARSER));
    const relativePath = path.startsWith(".") ? path : `./${path}`;
    return {
      fileName,
      moduleIds,
      code: code.replaceAll(JSON.stringify(PARSER), JSON.stringify(relativePath)),
    };
  });
}

/** Of TypeScript's library, what reading a file takes. */
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

function fail(_level: string, { message }: { readonly message: string }): never {
  throw new Error(message);
}

function chunksIn(output: readonly { readonly type: string }[]): OutputChunk[] {
  return output.filter((file): file is OutputChunk => file.type === "chunk");
}

/** The files that package.json names, of the compile side. */
function entriesOf(ending: ".js" | ".d.ts"): string[] {
  const named = [
    ...Object.values(manifest.bin),
    ...Object.values(manifest.exports).flatMap((target) =>
      typeof target === "string" ? [target] : [target.default],
    ),
  ];
  const files = [...new Set(named)]
    .map((path) => join(REPOSITORY, path))
    .filter((path) => path.startsWith(DIST));
  if (ending === ".js") return files.filter((path) => path.startsWith(COMPILE_SIDE + sep));
  return files.map((path) => path.replace(/\.js$/, ".d.ts"));
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
