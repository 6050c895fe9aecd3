import * as runtime from "../../runtime";
import { compare, configureObserved } from "./compare";
import { kindsOf } from "./kinds";
import { randomProgram } from "./random-program";

// npm run proof -- fuzz [count [first seed]]

const [count = 10_000, first = 0] = process.argv.slice(2).map(Number);

async function main(): Promise<void> {
  configureObserved();
  const started = performance.now();
  let failed = 0;
  const counts = new Map<string, number>();
  for (let seed = first; seed < first + count; seed += 1) {
    for (const kind of kindsOf(randomProgram(seed))) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    const verdict = await compare(seed);
    if (verdict === "same") continue;
    failed += 1;
    console.log(`seed ${seed}: ${verdict.what}\n\n${verdict.source}\n`);
    if (failed === 5) break;
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${count} programs from seed ${first}, ${failed} differences, in ${seconds} s`);
  console.log(
    [...counts]
      .map(([kind, number]) => `  ${number} with ${kind}`)
      .toSorted()
      .join("\n"),
  );
  process.exitCode = failed === 0 ? 0 : 1;
  await runtime.shutdown();
}

void main();
