import { readFileSync } from "node:fs";
import path from "node:path";
import ts from "typescript";
import { wovenProgram } from "../../transformer/hosts/ts-patch/weave-program";
import type { Parser } from "../../transformer/parser/parser";
import { weave } from "../../transformer/weave/weave";
import { install, OPTIONS, PACKAGES, REPOSITORY, sourcesIn, type Package } from "./packages";
import { tagAll } from "./tag-all";

// npm run proof -- corpus [package ...]
//
// Weaves third-party packages that ship their TypeScript sources, with a tag on every function that can be locked. The
// weave must accept everything and add no compile error. The declarations must stay the same byte for byte.

/** The published parser. */
const parts = require(path.join(REPOSITORY, "dist/transformer/parser/typescript.js")) as Parser;

/** Further attributes of the tags. Each package is woven once with each entry. */
const ATTRIBUTES = ["", "reentrant=true"];

interface Result {
  readonly woven: number;
  readonly errorsBefore: number;
  readonly complaints: readonly string[];
}

function main(): void {
  const wanted = process.argv.slice(2);
  let total = 0;
  let failed = 0;
  for (const found of PACKAGES.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
    const root = install(found);
    for (const attributes of ATTRIBUTES) {
      const started = performance.now();
      const { woven, errorsBefore, complaints } = check(found, root, attributes);
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      const what = `${found.name}@${found.version} ${attributes}`.trim();
      console.log(`${what}: ${woven} functions woven, ${errorsBefore} errors before, ${seconds} s`);
      for (const complaint of complaints.slice(0, 20)) console.log(`  ${complaint}`);
      total += woven;
      failed += complaints.length;
    }
  }
  console.log(`${total} functions woven, ${failed} complaints`);
  process.exitCode = failed === 0 ? 0 : 1;
}

function check({ known = [], knownAlways = [] }: Package, root: string, attributes: string): Result {
  const tagged = new Map<string, string>();
  let tags = 0;
  for (const file of sourcesIn(root)) {
    const { text, count } = tagAll(file, readFileSync(file, "utf8"), `businessFlag=corpus ${attributes}`);
    tagged.set(path.normalize(file), text);
    tags += count;
  }
  const settings = { ...OPTIONS, rootDir: "/", outDir: path.join(root, "out") };
  const host = ts.createCompilerHost(settings);
  const { readFile } = host;
  host.readFile = (fileName) => tagged.get(path.normalize(fileName)) ?? readFile(fileName);
  const plain = ts.createProgram({ rootNames: [...tagged.keys()], options: settings, host });
  const woven = wovenProgram(plain, host, { transformProgram: true }, { ts: ts as never }).woven;

  const complaints: string[] = [];
  const before = errorsOf(plain, root, tagged);
  const after = errorsOf(woven, root, tagged);
  for (const error of after) if (!before.has(error)) complaints.push(`new: ${error}`);
  for (const error of before) if (!after.has(error)) complaints.push(`gone: ${error}`);
  complaints.push(...differences(declarationsOf(plain, tagged), declarationsOf(woven, tagged), root));
  let sites = 0;
  for (const [file, text] of tagged) {
    const first = weave(file, text, { ts, module: "esm" });
    if (weave(file, text, { ts: parts, module: "esm" })?.code !== first?.code) {
      complaints.push(`${path.relative(root, file)} is woven differently with the published parser`);
    }
    sites += first?.sites.length ?? 0;
    if (first !== undefined && weave(file, first.code, { ts, module: "esm" }) !== undefined) {
      complaints.push(`${path.relative(root, file)} is woven a second time`);
    }
  }
  if (sites !== tags) complaints.push(`${tags} tags, but ${sites} functions woven`);
  const isKnown = (complaint: string): boolean =>
    [...knownAlways, ...(attributes === "" ? [] : known)].some((start) => complaint.startsWith(start));
  return {
    woven: sites,
    errorsBefore: before.size,
    complaints: complaints.filter((complaint) => !isKnown(complaint)),
  };
}

function errorsOf(program: ts.Program, root: string, files: ReadonlyMap<string, string>): Set<string> {
  const errors = new Set<string>();
  for (const fileName of files.keys()) {
    const file = program.getSourceFile(fileName);
    const found = [
      ...program.getSyntacticDiagnostics(file),
      ...program.getSemanticDiagnostics(file),
      ...program.getDeclarationDiagnostics(file),
    ];
    for (const { start = 0, code, messageText } of found) {
      const before = files.get(path.normalize(fileName))?.slice(0, start).split("\n") ?? [];
      const place = `${path.relative(root, fileName)}(${before.length},${(before.at(-1)?.length ?? 0) + 1})`;
      errors.add(`${place} TS${code} ${ts.flattenDiagnosticMessageText(messageText, " ")}`);
    }
  }
  return errors;
}

function declarationsOf(program: ts.Program, files: ReadonlyMap<string, string>): Map<string, string> {
  const declarations = new Map<string, string>();
  for (const fileName of files.keys()) {
    const write = (_: string, text: string): void => void declarations.set(fileName, text);
    program.emit(program.getSourceFile(fileName), write, undefined, true);
  }
  return declarations;
}

function differences(before: Map<string, string>, after: Map<string, string>, root: string): string[] {
  return [...before].flatMap(([file, text]) => {
    const found = after.get(file)?.split("\n") ?? [];
    const line = text.split("\n").findIndex((expected, index) => expected !== found[index]);
    if (line === -1 && after.get(file) === text) return [];
    return [
      `${path.relative(root, file)}: its declarations differ in line ${line + 1}: ${text.split("\n")[line]} / ${found[line]}`,
    ];
  });
}

main();
