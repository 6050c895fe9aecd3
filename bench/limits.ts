/**
 * Compares locks with the best possible result. With distinct keys, it runs empty sections under hand-written locks and under Lockweave,
 * the bare commands that Lockweave sends, and two PINGs. With one key, it runs sections of one turn of the event loop under hand-written
 * locks, under Lockweave, and in a queue in the process without any store. Each contestant runs in its own process, in turns, on one Redis.
 *
 *     npm run bench -- limits [rounds]
 */
import { execFileSync } from "node:child_process";
import { setImmediate } from "node:timers/promises";
import type { Redis } from "ioredis";
import { RELEASE, RELEASE_MANY } from "../runtime/stores/redis/scripts/release";
import type { Script } from "../runtime/stores/redis/scripts/script";
import { ACQUIRE_MANY } from "../runtime/stores/redis/scripts/acquire-many";
import { MOST_AT_ONCE } from "../runtime/stores/port";
import { startRedis } from "../test/support/redis-server";
import { enter, type ContestantName } from "./contestants";
import { connect } from "./contestants/contestant";
import { quartiles } from "./quantiles";

const WARM_MS = 1_000;
const MEASURED_MS = 2_000;
const LOCK_TIME_MS = 30_000;

/** Members that run sections repeatedly. Each call returns how many sections it was. */
interface Team {
  readonly members: number;
  runSections(member: number, turn: number): Promise<number>;
}

type Enter = (port: number, callers: number) => Promise<Team>;

interface Workload {
  readonly title: string;
  readonly callers: number;
  /** The ratios are relative to the first one. */
  readonly players: Readonly<Record<string, Enter>>;
}

const KEYS_OF_THEIR_OWN: Workload["players"] = {
  "by hand": contestant("raw", ownKey, noTime),
  lockweave: contestant("lockweave", ownKey, noTime),
  "its commands alone": itsCommands,
  "two PINGs": twoPings,
};

const ONE_KEY: Workload["players"] = {
  "by hand": contestant("raw", oneKey, oneTurn),
  lockweave: contestant("lockweave", oneKey, oneTurn),
  "a queue, no store": queueAlone,
};

const WORKLOADS: readonly Workload[] = [
  { title: "1 caller, distinct keys", callers: 1, players: KEYS_OF_THEIR_OWN },
  { title: "64 callers, distinct keys", callers: 64, players: KEYS_OF_THEIR_OWN },
  { title: "1,000 callers, distinct keys", callers: 1_000, players: KEYS_OF_THEIR_OWN },
  { title: "64 callers, one key, sections of one turn of the event loop", callers: 64, players: ONE_KEY },
];

function ownKey(caller: number, turn: number): string {
  return `${caller}:${turn}`;
}

function oneKey(): string {
  return "one";
}

async function noTime(): Promise<void> {}

async function oneTurn(): Promise<void> {
  await setImmediate();
}

function contestant(
  name: ContestantName,
  keyOf: (caller: number, turn: number) => string,
  section: () => Promise<void>,
): Enter {
  return async (port, callers) => {
    const client = await enter(name, port, LOCK_TIME_MS);
    return {
      members: callers,
      async runSections(caller, turn) {
        await client.run(keyOf(caller, turn), section);
        return 1;
      },
    };
  };
}

/** A queue without a store, first come, first served. */
async function queueAlone(_: number, callers: number): Promise<Team> {
  let last = Promise.resolve();
  return {
    members: callers,
    async runSections() {
      await (last = last.then(oneTurn));
      return 1;
    },
  };
}

async function twoPings(port: number, callers: number): Promise<Team> {
  const redis = await connect(port);
  return {
    members: callers,
    async runSections() {
      await redis.ping();
      await redis.ping();
      return 1;
    },
  };
}

/** Sends only the commands. One caller sends them one by one, and many callers send as many as possible in one script. */
async function itsCommands(port: number, callers: number): Promise<Team> {
  const redis = await connect(port);
  const scripts = await Promise.all(
    [RELEASE, ACQUIRE_MANY, RELEASE_MANY].map((script) => known(redis, script)),
  );
  const [drop = "", acquireMany = "", releaseMany = ""] = scripts;
  const members = Math.ceil(callers / MOST_AT_ONCE);
  const size = Math.ceil(callers / members);
  const id = "0123456789abcdef0123456789abcdef";
  return {
    members,
    async runSections(member, turn) {
      const keys = Array.from({ length: size }, (_, nth) => `LOCK_bench_${member}:${nth}:${turn}`);
      const queues = keys.map((key) => `lockweave:1:queue:{${key}}`);
      const [key = "", queue = ""] = [keys[0], queues[0]];
      if (callers === 1) {
        await redis.set(key, id, "PX", LOCK_TIME_MS, "NX", "GET");
        await redis.evalsha(drop, 2, key, queue, id, "1");
      } else {
        const ids = id.repeat(size);
        await redis.evalsha(acquireMany, size, ...keys, ids, LOCK_TIME_MS);
        await redis.evalsha(releaseMany, 2 * size, ...keys, ...queues, ids, "1");
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
  /** CPU time of the client in microseconds. */
  readonly cpu: number;
}

async function play({ members, runSections }: Team): Promise<Figures> {
  let turns = 0;
  const until = async (ms: number): Promise<number> => {
    const end = performance.now() + ms;
    let sections = 0;
    const all = Array.from({ length: members }, async (_, member) => {
      while (performance.now() < end) {
        const more = await runSections(member, (turns += 1));
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

function inOwnProcess({ title }: Workload, name: string, port: number): Figures {
  const args = ["--require", "ts-node/register/transpile-only", __filename];
  const output = execFileSync(process.execPath, [...args, "--play", title, name, String(port)], {
    encoding: "utf8",
  });
  return JSON.parse(output) as Figures;
}

async function playOne(title = "", name = "", port: number): Promise<void> {
  const workload = WORKLOADS.find((one) => one.title === title);
  const enterOne = workload?.players[name];
  if (enterOne === undefined) throw new Error(`There is no player ${name} of ${title}`);
  console.log(JSON.stringify(await play(await enterOne(port, workload?.callers ?? 0))));
  process.exit();
}

async function main(args: readonly string[]): Promise<void> {
  if (args[0] === "--play") return playOne(args[1], args[2], Number(args[3]));
  const rounds = Number(args[0] ?? 5);
  const server = await startRedis();
  console.log(
    `sections/s and client CPU per section, relative to the hand-written lock; ${rounds} rounds, medians (quartiles)`,
  );
  for (const workload of WORKLOADS) {
    const names = Object.keys(workload.players);
    const played = Array.from({ length: rounds }, () =>
      names.map((name) => inOwnProcess(workload, name, server.port)),
    );
    console.log(`\n${workload.title}`);
    for (const [nth, name] of names.entries()) {
      const ratioText = (figure: keyof Figures): string => {
        const ratios = played.map(
          (figures) => (figures[nth]?.[figure] ?? NaN) / (figures[0]?.[figure] ?? NaN),
        );
        const { low, median, high } = quartiles(ratios);
        return `${median.toFixed(2)} x (${low.toFixed(2)} to ${high.toFixed(2)})`;
      };
      const perSecond = quartiles(played.map((figures) => figures[nth]?.perSecond ?? NaN)).median;
      console.log(
        `  ${name.padEnd(20)} ${Math.round(perSecond).toLocaleString("en").padStart(8)}/s  ${ratioText("perSecond")}, CPU ${ratioText("cpu")}`,
      );
    }
  }
  await server.stop();
}

void main(process.argv.slice(2));
