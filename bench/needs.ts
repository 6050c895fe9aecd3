/**
 * Measures what `@needsLock` costs a single caller: a woven function in a process without the tag, with a loaded module that has the tag
 * (`tracked`), and with a body that also calls a tagged function (`checked`). Each runs in a thread of its own, and the threads take turns
 * in short slices. Their order is random, so other work on the machine hits all of them alike.
 *
 *     npm run bench -- needs [slices]
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import type * as Lockweave from "../runtime";
import type * as WovenEntry from "../runtime/woven/entry";
import { startRedis } from "../test/support/redis-server";
import { quartiles } from "./quantiles";

const PLAYERS = ["plain", "tracked", "checked"] as const;
type Player = (typeof PLAYERS)[number];

const SLICE_MS = 50;
const WARM_SLICES = 20;

interface Job {
  readonly player: Player;
  /** The URL of the Redis server, or `undefined` for the memory store. */
  readonly redis?: string;
  /** Whether the application already uses an `AsyncLocalStorage`, as OpenTelemetry and `nestjs-cls` do. */
  readonly isTraced?: boolean;
}

/** The microseconds of a call in one slice. */
interface Slice {
  readonly elapsed: number;
  readonly cpu: number;
}

/** The code that the weave generates. */
function section({ player, redis, isTraced }: Job): (orderNo: number) => Promise<number> {
  const lockweave = require("../dist/runtime/index") as typeof Lockweave & typeof WovenEntry;
  lockweave.configure(
    redis === undefined ? { store: lockweave.memoryStore(), woven: false } : { redis, woven: false },
  );
  if (isTraced === true) new AsyncLocalStorage().run({}, () => {});
  if (player !== "plain") lockweave.expectNeeds();
  const post = (orderNo: number): void => {
    if (player === "checked") lockweave.needs({ site: "Ledger.post", businessFlag: "payOrder" }, orderNo);
  };
  return async (orderNo) => {
    const lock = lockweave.open({ site: "OrderService.pay", businessFlag: "payOrder" }, orderNo);
    while (!(await lockweave.acquire(lock))) await lockweave.retryCheck(lock);
    try {
      lockweave.assertHeld(lock);
      post(orderNo);
      return await Promise.resolve(orderNo);
    } catch (error) {
      throw lockweave.fail(lock, error);
    } finally {
      await lockweave.release(lock);
    }
  };
}

function serve(job: Job): void {
  const call = section(job);
  let called = 0;
  const run = async (): Promise<Slice> => {
    const before = process.cpuUsage();
    const start = performance.now();
    let calls = 0;
    for (; performance.now() - start < SLICE_MS; calls += 1) await call((called += 1));
    const elapsed = ((performance.now() - start) * 1_000) / calls;
    const { user, system } = process.cpuUsage(before);
    return { elapsed, cpu: (user + system) / calls };
  };
  parentPort?.on("message", () => void run().then((slice) => parentPort?.postMessage(slice, [])));
}

async function measure(store: string, slices: number, settings: Omit<Job, "player">): Promise<void> {
  const workers = PLAYERS.map(
    (player) =>
      new Worker(__filename, {
        workerData: { player, ...settings } satisfies Job,
        execArgv: ["--require", "ts-node/register/transpile-only"],
      }),
  );
  const taken = workers.map((): Slice[] => []);
  for (let nth = -WARM_SLICES; nth < slices; nth += 1) {
    for (const at of [...workers.keys()].toSorted(() => Math.random() - 0.5)) {
      const reply = once(workers[at] as Worker, "message");
      workers[at]?.postMessage("run");
      const [slice] = (await reply) as [Slice];
      if (nth >= 0) taken[at]?.push(slice);
    }
  }
  await Promise.all(workers.map((worker) => worker.terminate()));
  const [plain = []] = taken;
  console.log(
    `${store}: microseconds a call, medians (quartiles), and what it adds to \`plain\` in the same turn`,
  );
  for (const [at, player] of PLAYERS.entries()) {
    const all = taken[at] ?? [];
    const column = (of: "elapsed" | "cpu"): string => {
      const { low, median, high } = quartiles(all.map((slice) => slice[of]));
      const added = quartiles(all.map((slice, nth) => slice[of] - (plain[nth]?.[of] ?? 0))).median;
      const percent = ((100 * added) / quartiles(plain.map((slice) => slice[of])).median).toFixed(1);
      return `${of} ${median.toFixed(1)} (${low.toFixed(1)} to ${high.toFixed(1)}), added ${added.toFixed(2)} (${percent}%)`;
    };
    console.log(`  ${player.padEnd(8)} ${column("elapsed")}   ${column("cpu")}`);
  }
}

async function main([slices = "200"]: readonly string[]): Promise<void> {
  console.log(`Node ${process.version}`);
  await measure("memory", Number(slices), {});
  await measure("memory, beside another AsyncLocalStorage", Number(slices), { isTraced: true });
  const server = await startRedis();
  await measure("Redis", Number(slices), { redis: server.url });
  await server.stop();
}

if (isMainThread) void main(process.argv.slice(2));
else serve(workerData as Job);
