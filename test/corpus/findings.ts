import { readFileSync } from "node:fs";
import path from "node:path";
import ts from "typescript";
import { analyze } from "../../transformer/analyze/analyze";
import { weave } from "../../transformer/weave/weave";
import { install, OPTIONS, PACKAGES, SERVICES, sourcesIn, type Package } from "./packages";
import { tagAll } from "./tag-all";

// npm run proof -- corpus-findings [package ...]
//
// Analyzes the same packages and some services, with a separate lock in each function that can be locked. Prints each finding
// with its source line, so that a person can check it. No real program has so many locks.

const counts = new Map<string, number>();
let functions = 0;

function report(found: Package): void {
  const root = install(found);
  const tagged = new Map<string, string>();
  for (const file of sourcesIn(root)) {
    const { text, count } = tagAll(
      file,
      readFileSync(file, "utf8"),
      (index) => `businessFlag=f${functions + index}`,
    );
    tagged.set(path.normalize(file), text);
    functions += count;
  }
  const host = ts.createCompilerHost(OPTIONS);
  const { readFile } = host;
  host.readFile = (fileName) => tagged.get(path.normalize(fileName)) ?? readFile(fileName);
  const program = ts.createProgram({ rootNames: [...tagged.keys()], options: OPTIONS, host });
  const sources = program
    .getSourceFiles()
    .filter(({ fileName }) => tagged.has(path.normalize(fileName)))
    .map((source) => ({
      source,
      plans: (
        weave(source.fileName, source.text, { ts, module: "esm", sourceFile: source })?.sites ?? []
      ).map(({ plan }) => plan),
    }));
  const started = performance.now();
  const { findings, unfollowed } = analyze(ts, program, sources);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${found.name}: ${findings.length} findings, ${unfollowed.length} not followed, ${seconds} s`);
  for (const { file, problem } of findings) {
    counts.set(problem.code, (counts.get(problem.code) ?? 0) + 1);
    const { line } = file.getLineAndCharacterOfPosition(problem.start);
    const text = (file.text.split("\n")[line] ?? "").replaceAll(/\/\*\* @redisLock .*? \*\/ /g, "");
    console.log(`  ${path.relative(root, file.fileName)}:${line + 1} ${problem.code} ${text.trim()}`);
    console.log(`    ${problem.message}`);
  }
}

const wanted = process.argv.slice(2);
for (const found of [...PACKAGES, ...SERVICES].filter(
  ({ name }) => wanted.length === 0 || wanted.includes(name),
))
  report(found);
console.log(`${functions} functions: ${[...counts].map(([code, count]) => `${code} ${count}`).join(", ")}`);
