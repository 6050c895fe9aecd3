import type { Contestant } from "./contestants/contestant";
import { requestAndWait, acquireAndHold, type Holding, type HoldingRecord } from "./holding";
import { runLoop, type Loop, type LoopRecord } from "./loop";

export interface Opening {
  readonly port: number;
  /** The number of new clients, which replace the open ones. */
  readonly clients: number;
  readonly lockTimeMs: number;
}

/** The jobs of a worker. */
export interface Jobs {
  open(opening: Opening): Promise<void>;
  loop(loop: Loop): Promise<LoopRecord>;
  hold(holding: Holding): Promise<HoldingRecord>;
  wait(holding: Holding): Promise<HoldingRecord>;
}

export interface Order {
  readonly job: keyof Jobs;
  readonly argument: unknown;
}

export type Answer = { readonly result: unknown } | { readonly error: string };

/** The warm-up ends after this many sections, or after this time if the store is slow. */
const WARM_UP_SECTIONS = 2_000;
const LONGEST_WARM_UP_MS = 500;

/**
 * Runs the jobs that the parent process sends.
 *
 * @param enter connects a new client of the contestant
 */
export function serveJobs(
  enter: (port: number, lockTimeMs: number) => Contestant | Promise<Contestant>,
): void {
  let clients: Contestant[] = [];

  const only = (): Contestant => {
    const [client] = clients;
    if (client === undefined) throw new Error("Expected an open client");
    return client;
  };

  const jobs: Jobs = {
    async open({ port, clients: count, lockTimeMs }) {
      await Promise.all(clients.map((client) => client.close()));
      clients = await Promise.all(Array.from({ length: count }, async () => await enter(port, lockTimeMs)));
      // Loads scripts, and lets hot code compile before any measurement.
      const endAt = performance.now() + LONGEST_WARM_UP_MS;
      const warmUp = async (client: Contestant, index: number): Promise<void> => {
        const sections = Math.ceil(WARM_UP_SECTIONS / count);
        for (let turn = 0; turn < sections && performance.now() < endAt; turn += 1) {
          await client.run(`warm-up:${process.pid}:${index}:${turn}`, async () => {});
        }
      };
      await Promise.all(clients.map(warmUp));
    },
    loop: (loop) => runLoop(clients, loop),
    hold: (holding) => acquireAndHold(only(), holding),
    wait: (holding) => requestAndWait(only(), holding),
  };

  process.on("message", async ({ job, argument }: Order) => {
    let answer: Answer;
    try {
      const runJob = jobs[job] as (argument: unknown) => Promise<unknown>;
      answer = { result: await runJob(argument) };
    } catch (error) {
      answer = { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
    }
    process.send?.(answer);
  });

  // The parent process is gone, so this one exits, too, even if it holds locks.
  process.on("disconnect", () => process.exit());
}
