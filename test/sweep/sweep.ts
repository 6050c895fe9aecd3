import { fork } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { sizeOfProduct, sweepOf } from "./cover";
import type { Result } from "./run-setup";
import { nameOf, setupNamed, type Setup } from "./setup";

// npm run proof -- sweep [count|all [seed]], or the names of setups: npm run proof -- sweep tspc/first/cold/imported/function/ts/plain

interface Answer extends Result {
  readonly name: string;
  readonly ms: number;
}

const ALL = "all";

interface Plan {
  readonly what: string;
  readonly setups: readonly Setup[];
}

function planOf([first = "180", second]: readonly string[], names: readonly string[]): Plan {
  if (first.includes("/")) return { what: "the named setups", setups: names.map(setupNamed) };
  const seed = second === undefined ? Math.floor(Math.random() * 1e9) : Number(second);
  const count = first === ALL ? ALL : Number(first);
  const setups = sweepOf(count, seed);
  return { what: `${setups.length} of ${sizeOfProduct()} setups, seed ${seed}`, setups };
}

/** Gives each idle worker a setup. Returns all answers. */
async function answersTo(setups: readonly Setup[], root: string): Promise<Answer[]> {
  const answers: Answer[] = [];
  const waiting = setups.map(nameOf);
  const workers = Array.from(
    { length: Math.min(availableParallelism(), setups.length) },
    async (_, index) => {
      const dir = join(root, `worker-${index}`);
      await mkdir(dir);
      const child = fork(join(__dirname, "worker.ts"), [dir], {
        execArgv: ["--require", "ts-node/register/transpile-only"],
      });
      await new Promise<void>((resolve, reject) => {
        const next = (): void => {
          const name = waiting.shift();
          if (name === undefined) child.disconnect();
          else child.send(name);
        };
        child.on("message", (answer: Answer) => {
          answers.push(answer);
          report(answer);
          next();
        });
        child.once("exit", (code) =>
          code === 0 ? resolve() : reject(new Error(`a worker exited with code ${code}`)),
        );
        next();
      });
    },
  );
  await Promise.all(workers);
  return answers;
}

function report({ name, fault, ms }: Answer): void {
  if (process.env["VERBOSE"] !== undefined) console.log(`  ${name} (${Math.round(ms)} ms)`);
  if (fault === undefined) return;
  console.log(`✘ ${name}: ${fault}\n  Repeat it: npm run proof -- sweep ${name}\n`);
}

function countsOf(answers: readonly Answer[]): string {
  const counts = new Map<string, number>();
  for (const { name, outcome, at, fault, limit } of answers) {
    const [host = ""] = name.split("/");
    const how =
      fault === undefined ? (limit ?? (outcome === "refused" ? `refused at the ${at}` : outcome)) : "FAILED";
    const key = `${host}: ${how}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return [...counts]
    .map(([key, count]) => `  ${key} ${count}`)
    .toSorted()
    .join("\n");
}

async function main(): Promise<void> {
  const args = process.argv.slice(2);
  const { what, setups } = planOf(args, args);
  console.log(what);
  const root = await realpath(await mkdtemp(join(tmpdir(), "lockweave-sweep-")));
  const startedAt = performance.now();
  try {
    const answers = await answersTo(setups, root);
    const failed = answers.filter(({ fault }) => fault !== undefined).length;
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    console.log(
      `${countsOf(answers)}\n${answers.length} setups, ${failed} failed, in ${seconds} s (${what})`,
    );
    process.exitCode = failed === 0 ? 0 : 1;
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

void main();
