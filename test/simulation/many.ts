import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { add, noCounts, type Counts } from "./outcome";
import { simulate } from "./world";

// node --require ts-node/register/transpile-only test/simulation/many.ts [count] [first seed]
// Each core works on slices of the seeds in its own process.

interface Slice {
  readonly first: number;
  readonly count: number;
}

interface Result {
  readonly seeds: number;
  readonly counts: Counts;
  readonly failures: readonly { readonly seed: number; readonly what: string }[];
}

const SLICE = 250;
const PROGRESS_EVERY_MS = 20_000;

async function work({ first, count }: Slice): Promise<Result> {
  const counts = noCounts();
  const failures: Result["failures"][number][] = [];
  for (let seed = first; seed < first + count; seed += 1) {
    const outcome = await simulate(seed);
    add(counts, outcome.counts);
    const [problem] = outcome.problems;
    if (problem !== undefined) failures.push({ seed, what: `${outcome.weather}: ${problem}` });
  }
  return { seeds: count, counts, failures };
}

async function lead(count: number, first: number): Promise<void> {
  const slices = Array.from({ length: Math.ceil(count / SLICE) }, (_, n) => ({
    first: first + n * SLICE,
    count: Math.min(SLICE, count - n * SLICE),
  }));
  const startedAt = performance.now();
  const secondsPast = (): number => (performance.now() - startedAt) / 1_000;
  const counts = noCounts();
  const failures: Result["failures"][number][] = [];
  let seeds = 0;
  const progress = setInterval(() => {
    console.log(
      `${seeds} of ${count} seeds after ${Math.round(secondsPast())} s, ${failures.length} with problems`,
    );
  }, PROGRESS_EVERY_MS);
  const hand = async (): Promise<void> => {
    const worker = fork(__filename, ["worker"]);
    const end = once(worker, "exit").then(([code]) => {
      if (code !== 0) throw new Error(`a worker ended with ${String(code)}`);
    });
    for (let slice = slices.shift(); slice !== undefined; slice = slices.shift()) {
      worker.send(slice);
      const [result] = await Promise.race([reply(worker), end.then(() => [])]);
      if (result === undefined) throw new Error("a worker ended before its work was done");
      seeds += result.seeds;
      add(counts, result.counts);
      failures.push(...result.failures);
    }
    worker.disconnect();
    await end;
  };
  try {
    await Promise.all(Array.from({ length: availableParallelism() }, hand));
  } finally {
    clearInterval(progress);
  }
  for (const { seed, what } of failures) console.log(`SEED=${seed} ${what}`);
  const all = Object.entries(counts).map(([name, n]) => `${n} ${NAMES[name as keyof Counts]}`);
  const perSecond = Math.round(seeds / secondsPast());
  console.log(
    `${seeds} seeds from ${first}: ${all.join(", ")}, ${failures.length} with problems (${Math.round(secondsPast())} s, ${perSecond} seeds per second)`,
  );
  process.exitCode = failures.length === 0 ? 0 : 1;
}

const NAMES: Record<keyof Counts, string> = {
  served: "sections served",
  turnedAway: "turned away",
  crashes: "crashes",
  freezes: "freezes",
  restarts: "restarts without data",
  breaks: "broken connections",
};

/** Returns the next message of the worker. */
async function reply(worker: ChildProcess): Promise<Result[]> {
  return (await once(worker, "message")) as Result[];
}

if (process.argv[2] === "worker") {
  process.on("message", (slice: Slice) => {
    void work(slice).then((result) => process.send?.(result));
  });
} else {
  const [count = 100_000, first = 1] = process.argv.slice(2).map(Number);
  void lead(count, first);
}
