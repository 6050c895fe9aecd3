import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { add, noCounts, type Counts, type Outcome } from "./outcome";
import { simulatePostgres } from "./postgres/simulate";
import { simulate } from "./world";

// node --require ts-node/register/transpile-only test/simulation/many.ts [count] [first seed]
// Each seed is a world with locks in Redis, and another one with locks in PostgreSQL. Each core works on slices of the seeds in its own process.

const STORES: Readonly<Record<string, (seed: number) => Promise<Outcome>>> = {
  Redis: (seed) => simulate(seed),
  PostgreSQL: (seed) => simulatePostgres(seed),
};

interface Slice {
  readonly store: string;
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

async function work({ store, first, count }: Slice): Promise<Result> {
  const run = STORES[store];
  if (run === undefined) throw new Error(`Expected a store, got ${store}`);
  const counts = noCounts();
  const failures: Result["failures"][number][] = [];
  for (let seed = first; seed < first + count; seed += 1) {
    const outcome = await run(seed);
    add(counts, outcome.counts);
    const [problem] = outcome.problems;
    if (problem !== undefined) failures.push({ seed, what: `${store}, ${outcome.weather}: ${problem}` });
  }
  return { seeds: count, counts, failures };
}

async function lead(count: number, first: number): Promise<void> {
  const slices: Slice[] = [];
  for (let done = 0; done < count; done += SLICE) {
    for (const store of Object.keys(STORES))
      slices.push({ store, first: first + done, count: Math.min(SLICE, count - done) });
  }
  const worlds = count * Object.keys(STORES).length;
  const startedAt = performance.now();
  const secondsPast = (): number => (performance.now() - startedAt) / 1_000;
  const counts = noCounts();
  const failures: Result["failures"][number][] = [];
  let done = 0;
  const progress = setInterval(() => {
    console.log(
      `${done} of ${worlds} worlds after ${Math.round(secondsPast())} s, ${failures.length} with problems`,
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
      done += result.seeds;
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
  const perSecond = Math.round(done / secondsPast());
  console.log(
    `${done} worlds from seed ${first}: ${all.join(", ")}, ${failures.length} with problems (${Math.round(secondsPast())} s, ${perSecond} worlds per second)`,
  );
  process.exitCode = failures.length === 0 ? 0 : 1;
}

const NAMES: Record<keyof Counts, string> = {
  served: "sections served",
  turnedAway: "turned away",
  crashes: "crashes",
  freezes: "freezes",
  restarts: "restarts of the server",
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
