/**
 * What stands between a lock and the limit: sections of length zero by hand, by lockweave, by the very commands that
 * lockweave sends without anything around them, and by two PINGs. Each plays in a process of its own, by turns, on one Redis.
 *
 *     npm run bench:limits [-- rounds]
 */
import { execFileSync } from "node:child_process";
import type { Redis } from "ioredis";
import { DROP, DROP_MANY } from "../runtime/stores/redis/scripts/drop";
import type { Script } from "../runtime/stores/redis/scripts/script";
import { TAKE_MANY } from "../runtime/stores/redis/scripts/take-many";
import { MOST_AT_ONCE } from "../runtime/stores/port";
import { startRedis } from "../test/support/redis-server";
import { enter, type ContestantName } from "./contestants";
import { connect } from "./contestants/contestant";
import { quartiles } from "./quantiles";

const WARM_MS = 1_000;
const MEASURED_MS = 2_000;
const LOCK_TIME_MS = 30_000;
const CALLERS = [1, 64, 1_000];

/** One who comes again and again, so many of them: each time, how many sections it was. */
interface Team {
  readonly members: number;
  comeAgain(member: number, turn: number): Promise<number>;
}

type Enter = (port: number, callers: number) => Promise<Team>;

const PLAYERS: Readonly<Record<string, Enter>> = {
  "by hand": contestant("raw"),
  lockweave: contestant("lockweave"),
  "its commands alone": itsCommands,
  "two PINGs": twoPings,
};

function contestant(name: ContestantName): Enter {
  return async (port, callers) => {
    const client = await enter(name, port, LOCK_TIME_MS);
    return {
      members: callers,
      async comeAgain(caller, turn) {
        await client.run(`${caller}:${turn}`, async () => {});
        return 1;
      },
    };
  };
}

async function twoPings(port: number, callers: number): Promise<Team> {
  const redis = await connect(port);
  return {
    members: callers,
    async comeAgain() {
      await redis.ping();
      await redis.ping();
      return 1;
    },
  };
}

/** Those of one caller one after the other; those of many together, of as many as go in one. */
async function itsCommands(port: number, callers: number): Promise<Team> {
  const redis = await connect(port);
  const scripts = await Promise.all([DROP, TAKE_MANY, DROP_MANY].map((script) => known(redis, script)));
  const [drop = "", takeMany = "", dropMany = ""] = scripts;
  const members = Math.ceil(callers / MOST_AT_ONCE);
  const size = Math.ceil(callers / members);
  const id = "0123456789abcdef0123456789abcdef";
  return {
    members,
    async comeAgain(member, turn) {
      const keys = Array.from({ length: size }, (_, nth) => `LOCK_bench_${member}:${nth}:${turn}`);
      const queues = keys.map((key) => `lockweave:2:queue:{${key}}`);
      const [key = "", queue = ""] = [keys[0], queues[0]];
      if (callers === 1) {
        await redis.set(key, id, "PX", LOCK_TIME_MS, "NX", "GET");
        await redis.evalsha(drop, 2, key, queue, id, "1");
      } else {
        const ids = id.repeat(size);
        await redis.evalsha(takeMany, size, ...keys, ids, LOCK_TIME_MS);
        await redis.evalsha(dropMany, 2 * size, ...keys, ...queues, ids, "1");
      }
      return size;
    },
  };
}

async function known(redis: Redis, { source }: Script): Promise<string> {
  return String(await redis.script("LOAD", source));
}

interface Figures {
  readonly perSecond: number;
  /** Microseconds of the client's CPU. */
  readonly cpu: number;
}

async function play(name: string, callers: number, port: number): Promise<Figures> {
  const { members, comeAgain } = (await PLAYERS[name]?.(port, callers)) ?? { members: 0 };
  if (comeAgain === undefined) throw new Error(`There is no player ${name}`);
  let turns = 0;
  const until = async (ms: number): Promise<number> => {
    const end = performance.now() + ms;
    let sections = 0;
    const all = Array.from({ length: members }, async (_, member) => {
      while (performance.now() < end) {
        const more = await comeAgain(member, (turns += 1));
        sections += more;
      }
    });
    await Promise.all(all);
    return sections;
  };
  await until(WARM_MS);
  const [startedAt, before] = [performance.now(), process.cpuUsage()];
  const sections = await until(MEASURED_MS);
  const { user, system } = process.cpuUsage(before);
  return {
    perSecond: (1_000 * sections) / (performance.now() - startedAt),
    cpu: (user + system) / sections,
  };
}

function inOwnProcess(name: string, callers: number, port: number): Figures {
  const args = ["--require", "ts-node/register/transpile-only", __filename];
  const told = execFileSync(process.execPath, [...args, "--play", name, String(callers), String(port)], {
    encoding: "utf8",
  });
  return JSON.parse(told) as Figures;
}

async function main(args: readonly string[]): Promise<void> {
  if (args[0] === "--play") {
    console.log(JSON.stringify(await play(String(args[1]), Number(args[2]), Number(args[3]))));
    process.exit();
  }
  const rounds = Number(args[0] ?? 5);
  const names = Object.keys(PLAYERS);
  const server = await startRedis();
  console.log(`sections/s and client CPU a section, to those by hand; ${rounds} rounds, medians (quartiles)`);
  for (const callers of CALLERS) {
    const played = Array.from({ length: rounds }, () =>
      names.map((name) => inOwnProcess(name, callers, server.port)),
    );
    console.log(`\n${callers.toLocaleString("en")} ${callers === 1 ? "caller" : "callers"}, distinct keys`);
    for (const [nth, name] of names.entries()) {
      const told = (figure: keyof Figures): string => {
        const ratios = played.map(
          (figures) => (figures[nth]?.[figure] ?? NaN) / (figures[0]?.[figure] ?? NaN),
        );
        const { low, median, high } = quartiles(ratios);
        return `${median.toFixed(2)} x (${low.toFixed(2)} to ${high.toFixed(2)})`;
      };
      const perSecond = quartiles(played.map((figures) => figures[nth]?.perSecond ?? NaN)).median;
      console.log(
        `  ${name.padEnd(20)} ${Math.round(perSecond).toLocaleString("en").padStart(8)}/s  ${told("perSecond")}, CPU ${told("cpu")}`,
      );
    }
  }
  await server.stop();
}

void main(process.argv.slice(2));
