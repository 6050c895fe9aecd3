import * as runtime from "../../runtime";
import { compare, configureObserved } from "./compare";

// npm run fuzz [-- count [first seed]]

const [count = 10_000, first = 0] = process.argv.slice(2).map(Number);

async function main(): Promise<void> {
  configureObserved();
  const started = performance.now();
  let failed = 0;
  for (let seed = first; seed < first + count; seed += 1) {
    const verdict = await compare(seed);
    if (verdict === "same") continue;
    failed += 1;
    console.log(`seed ${seed}: ${verdict.what}\n\n${verdict.source}\n`);
    if (failed === 5) break;
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${count} programs from seed ${first}, ${failed} that differ, in ${seconds} s`);
  process.exitCode = failed === 0 ? 0 : 1;
  await runtime.shutdown();
}

void main();
