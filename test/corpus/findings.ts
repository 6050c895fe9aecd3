import { readFileSync } from "node:fs";
import path from "node:path";
import ts from "typescript";
import { analyze, type Analysis } from "../../transformer/analyze/analyze";
import { weave } from "../../transformer/weave/weave";
import { install, OPTIONS, PACKAGES, SERVICES, sourcesIn, type Package } from "./packages";
import { tagAll } from "./tag-all";

// npm run proof -- corpus-findings [package ...]
//
// Analyzes the same packages and some services twice, and prints each finding with its source line, so that a person can check it. Real
// programs have far fewer tags.
//
// 1. Each function that can be locked has a lock of its own.
// 2. Every tenth of these functions needs a lock that nobody acquires. So each path to it that LW1510 reports must exist in the code, and
//    nothing else in the package may call the function where the path begins.

const counts = new Map<string, number>();
let functions = 0;

function report(found: Package): void {
  const root = install(found);
  const files = sourcesIn(root);
  const first = functions;
  const locked = new Map<string, string>();
  const needing = new Map<string, string>();
  for (const file of files) {
    const text = readFileSync(file, "utf8");
    const { text: tagged, count } = tagAll(file, text, (index) => flagOf(functions + index));
    locked.set(path.normalize(file), tagged);
    const isChosen = (index: number): boolean => (functions + index - first) % 10 === 0;
    const needs = tagAll(
      file,
      text,
      (index) => (isChosen(index) ? flagOf(functions + index) : undefined),
      "needsLock",
    );
    needing.set(path.normalize(file), needs.text);
    functions += count;
  }
  const ofLocks = analysisOf(locked, OPTIONS);
  // Other projects may import what a library exports, and hold the lock. Of an application, nobody does.
  const ofNeeds = analysisOf(needing, { ...OPTIONS, declaration: false });
  const findings = [...ofLocks.findings, ...ofNeeds.findings];
  const seconds = [ofLocks, ofNeeds].map(({ cpuSeconds }) => `${cpuSeconds.toFixed(1)} s`).join(" and ");
  console.log(
    `${found.name}: ${findings.length} findings, ${ofLocks.unfollowed.length} not followed, ${seconds} of CPU time`,
  );
  for (const { file, problem } of findings) {
    counts.set(problem.code, (counts.get(problem.code) ?? 0) + 1);
    const { line } = file.getLineAndCharacterOfPosition(problem.start);
    const text = (file.text.split("\n")[line] ?? "").replaceAll(/\/\*\* @\w+Lock .*? \*\/ /g, "");
    console.log(`  ${path.relative(root, file.fileName)}:${line + 1} ${problem.code} ${text.trim()}`);
    console.log(`    ${problem.message}`);
  }
}

function flagOf(index: number): string {
  return `businessFlag=f${index}`;
}

function analysisOf(
  texts: ReadonlyMap<string, string>,
  options: ts.CompilerOptions,
): Analysis & { readonly cpuSeconds: number } {
  const host = ts.createCompilerHost(options);
  const { readFile } = host;
  host.readFile = (fileName) => texts.get(path.normalize(fileName)) ?? readFile(fileName);
  const program = ts.createProgram({ rootNames: [...texts.keys()], options, host });
  const sources = program
    .getSourceFiles()
    .filter(({ fileName }) => texts.has(path.normalize(fileName)))
    .map((source) => {
      const woven = weave(source.fileName, source.text, { ts, module: "esm", sourceFile: source });
      return { source, plans: (woven?.sites ?? []).map(({ plan }) => plan), needs: woven?.needs ?? [] };
    });
  const before = process.cpuUsage(); // Unlike the time of a clock, it hardly depends on what else runs.
  const analysis = analyze(ts, program, sources);
  const { user, system } = process.cpuUsage(before);
  return { ...analysis, cpuSeconds: (user + system) / 1e6 };
}

const wanted = process.argv.slice(2);
for (const found of [...PACKAGES, ...SERVICES].filter(
  ({ name }) => wanted.length === 0 || wanted.includes(name),
))
  report(found);
console.log(`${functions} functions: ${[...counts].map(([code, count]) => `${code} ${count}`).join(", ")}`);
