/**
 * Compares Lockweave over each client library with a hand-written lock over the same library. All callers use distinct keys, and sections are
 * empty. Each contestant runs in its own process, in turns, on one Redis.
 *
 *     npm run bench -- clients [<rounds> [<library>]]
 *
 * It installs the libraries that are no development dependencies, and Bun, which runs the process of its own client.
 */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type * as Lockweave from "../runtime";
import { startRedis } from "../test/support/redis-server";
import { LIBRARIES, type ConnectedClient, type Library } from "./client-libraries";
import { now } from "./clock";
import { RELEASE } from "./contestants/raw";
import type { Contestant } from "./contestants/contestant";
import { runLoop } from "./loop";
import { quartiles } from "./quantiles";
import { judgeDistinctKeys } from "./referee";

const TIMES = { settlingMs: 3_000, durationMs: 8_000 };
const LOCK_TIME_MS = 30_000;
const POLL_MS = 10;
const CALLERS = [1, 1_000] as const;
const ROUNDS = 5;

type Run = Contestant["run"];

/** Returns `run` of the lock. */
const PLAYERS = { "by hand": byHand, lockweave } as const;
type Player = keyof typeof PLAYERS;

async function byHand({ byHand: commands }: ConnectedClient): Promise<Run> {
  const digest = String(await commands.load(RELEASE));
  return async (key, section) => {
    const token = randomUUID();
    while ((await commands.set(key, token, LOCK_TIME_MS)) !== "OK") await pause(POLL_MS);
    try {
      await section();
    } finally {
      await commands.run(digest, key, token);
    }
  };
}

/** Uses the built package, as an application does. */
async function lockweave({ redis }: ConnectedClient): Promise<Run> {
  const { configure, lockKey, withLock } = require("../dist/runtime/index") as typeof Lockweave;
  configure({ redis, woven: false, defaults: { lockTime: `${LOCK_TIME_MS}ms`, retryTimes: 100 } });
  return (key, section) => withLock(lockKey("bench", key), {}, section);
}

interface Figures {
  readonly perSecond: number;
  /** CPU time of the client in microseconds. */
  readonly cpu: number;
}

async function play(library: string, player: Player, callers: number, port: number): Promise<Figures> {
  const client = await libraryOf(library).connect(port);
  const run = await PLAYERS[player](client);
  const startAt = now();
  const loop = {
    keys: "distinct",
    // The exit of an earlier process may have left locks behind.
    key: `order${process.pid}`,
    callers,
    sectionMs: 0,
    pauseMs: 0,
    startAt,
    ...TIMES,
  } as const;
  const record = await runLoop([{ run }], loop);
  const { sectionsPerSecond, cpuMsPerSection } = judgeDistinctKeys({ startAt, ...TIMES, records: [record] });
  return { perSecond: sectionsPerSecond, cpu: 1_000 * cpuMsPerSection };
}

function libraryOf(name: string): Library {
  const library = LIBRARIES[name];
  if (library === undefined) {
    throw new Error(`There is no library \`${name}\`: ${Object.keys(LIBRARIES).join(", ")}`);
  }
  return library;
}

async function inOwnProcess(
  library: string,
  player: Player,
  callers: number,
  port: number,
): Promise<Figures> {
  const program = await libraryOf(library).program?.();
  const hook = program === undefined ? ["--require", "ts-node/register/transpile-only"] : [];
  const args = [...hook, __filename, "--play", library, player, String(callers), String(port)];
  const output = execFileSync(program ?? process.execPath, args, { encoding: "utf8" });
  return JSON.parse(output.trimEnd().split("\n").at(-1) ?? "") as Figures; // GLIDE logs to the same stream.
}

async function main(args: readonly string[]): Promise<void> {
  if (args[0] === "--play") {
    const [, library = "", player, callers, port] = args;
    console.log(JSON.stringify(await play(library, player as Player, Number(callers), Number(port))));
    process.exit();
  }
  const rounds = Number(args[0] ?? ROUNDS);
  const libraries = args[1] === undefined ? Object.keys(LIBRARIES) : [args[1]];
  const rows = libraries.flatMap((library) =>
    CALLERS.map((callers) => ({ library, callers, played: [] as Record<Player, Figures>[] })),
  );
  const server = await startRedis();
  for (let round = 0; round < rounds; round += 1) {
    for (const { library, callers, played } of rows) {
      // The contestant that plays first changes with each round.
      const order: readonly Player[] = round % 2 === 0 ? ["by hand", "lockweave"] : ["lockweave", "by hand"];
      const figures: Partial<Record<Player, Figures>> = {};
      for (const player of order) figures[player] = await inOwnProcess(library, player, callers, server.port);
      played.push(figures as Record<Player, Figures>);
    }
  }
  await server.stop();
  console.log(`Lockweave, to a lock by hand over the same client; ${rounds} rounds, medians (quartiles)\n`);
  for (const { library, callers, played } of rows) {
    const ratioText = (figure: keyof Figures): string => {
      const { low, median, high } = quartiles(
        played.map(({ lockweave: ours, "by hand": hand }) => ours[figure] / hand[figure]),
      );
      return `${median.toFixed(2)} x (${low.toFixed(2)} to ${high.toFixed(2)})`;
    };
    const perSecond = quartiles(played.map(({ "by hand": hand }) => hand.perSecond)).median;
    const handText = `${Math.round(perSecond).toLocaleString("en").padStart(7)}/s by hand`;
    const callersText = `${callers.toLocaleString("en").padStart(5)} callers`;
    console.log(
      `${library.padEnd(12)} ${callersText}  ${handText}  ${ratioText("perSecond")}, CPU ${ratioText("cpu")}`,
    );
  }
}

void main(process.argv.slice(2));
