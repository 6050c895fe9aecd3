import { mkdir, mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { extensionOf, tsconfigText, type Files } from "./files";
import { shopText, type Stage } from "./program";
import { runCommand } from "./processes";
import type { Setup } from "./setup";

const built = new Map<string, Promise<Files>>();

/** Returns the files that the linked package exports: its source compiled by tspc or tsc, with declarations. */
export function builtShop(root: string, setup: Setup, stage: Stage): Promise<Files> {
  const isWoven = setup.layout === "linked-woven";
  const { form, file, mode } = setup;
  const key = JSON.stringify([form, file, mode, stage, isWoven]);
  const found = built.get(key) ?? buildShop(root, setup, stage, isWoven);
  built.set(key, found);
  return found;
}

async function buildShop(root: string, setup: Setup, stage: Stage, isWoven: boolean): Promise<Files> {
  const dir = await mkdtemp(join(root, "shop-"));
  await mkdir(join(dir, "src"));
  const own: Setup = { ...setup, host: "tspc", order: "first", cache: "cold", layout: "imported" };
  const settings = JSON.parse(tsconfigText(own, isWoven)) as { readonly compilerOptions: object };
  const compilerOptions = { ...settings.compilerOptions, rootDir: "src", outDir: "dist", declaration: true };
  const type = setup.file === "ts-in-cjs" ? "commonjs" : "module";
  await writeFile(join(dir, "package.json"), JSON.stringify({ name: "shop", type }));
  await writeFile(join(dir, "tsconfig.json"), JSON.stringify({ ...settings, compilerOptions }));
  await writeFile(join(dir, `src/shop.${extensionOf(setup)}`), shopText(setup, stage));
  const { code, output } = await runCommand(isWoven ? "tspc" : "tsc", dir, []);
  if (code !== 0) throw new Error(output);
  const files = await readdir(join(dir, "dist"));
  const texts = files.map(async (file) => [
    `packages/shop/dist/${file}`,
    await readFile(join(dir, "dist", file), "utf8"),
  ]);
  return Object.fromEntries(await Promise.all(texts)) as Files;
}
