/** A process of clients: a crew starts it, and tells it what to do. */
import { enter, isContestant } from "./contestants";
import type { Contestant } from "./contestants/contestant";
import { askAndWait, takeAndHold, type Holding, type HoldingRecord } from "./holding";
import { runLoop, type Loop, type LoopRecord } from "./loop";

export interface Opening {
  readonly port: number;
  /** New ones, in the place of those that were open. */
  readonly clients: number;
  readonly lockTimeMs: number;
}

/** What a worker can be told. */
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

/** So many on loopback, and so long where the way is long. */
const WARM_UP_SECTIONS = 2_000;
const LONGEST_WARM_UP_MS = 500;

const [, , name] = process.argv;
let clients: Contestant[] = [];

const jobs: Jobs = {
  async open({ port, clients: count, lockTimeMs }) {
    if (!isContestant(name)) throw new Error(`There is no contestant \`${name}\``);
    await Promise.all(clients.map((client) => client.close()));
    clients = await Promise.all(Array.from({ length: count }, () => enter(name, port, lockTimeMs)));
    // Scripts get loaded and hot code compiled before anybody looks at the clock.
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
  hold: (holding) => takeAndHold(only(), holding),
  wait: (holding) => askAndWait(only(), holding),
};

function only(): Contestant {
  const [client] = clients;
  if (client === undefined) throw new Error("Expected an open client");
  return client;
}

process.on("message", async ({ job, argument }: Order) => {
  let answer: Answer;
  try {
    const carryOut = jobs[job] as (argument: unknown) => Promise<unknown>;
    answer = { result: await carryOut(argument) };
  } catch (error) {
    answer = { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
  process.send?.(answer);
});

// Whoever gave the orders is gone: so are we, whatever is still held.
process.on("disconnect", () => process.exit());
