import test from "ava";
import { applyMigration } from "../../runtime/stores/postgres/apply-migration";
import { startPostgres, type PostgresServer } from "../support/postgres-server";
import { startRedis, type RedisServer } from "../support/redis-server";
import { makeProject, type Project } from "./project";

// Tags that move from Redis to PostgreSQL: the whole change, and the order of releases in docs/postgres.md.

let redis: RedisServer;
let postgres: PostgresServer;

test.before(async () => {
  [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
  await applyMigration(postgres.url, "lockweave", "url");
});
test.after.always(() => Promise.all([redis.stop(), postgres.stop()]));

const SERVICE = `import { currentLock } from "lockweave";

type Body = () => Promise<void>;

export class Ledger {
  /** @redisLock businessFlag=moved keyName=no lockTime=30s holdAtMost=10m store=default */
  async post(no: string, body: Body): Promise<void> { await body(); }
  /** @redisLock businessFlag=moved keyName=no retryTimes=0 onFailure=skip store=default */
  async tryPost(no: string): Promise<string | undefined> { return no; }
  /** @redisLock businessFlag=token keyName=no fencing=true release=background store=default */
  async token(no: string): Promise<number> { return currentLock().fencingToken ?? 0; }
  /** @redisLock businessFlag=read keyName=no mode=read store=default */
  async read(no: string, body: Body): Promise<void> { await body(); }
  /** @redisLock businessFlag=read keyName=no mode=write store=default */
  async write(no: string, body: Body): Promise<void> { await body(); }
  /** @redisLock businessFlag=few keyName=no permits=2 store=default */
  async few(no: string, body: Body): Promise<void> { await body(); }
  /** @redisLock businessFlag=transfer keyName=accounts each=true store=default */
  async transfer(accounts: string[], body: Body): Promise<void> { await body(); }
  /** @redisLock businessFlag=again keyName=no reentrant=true store=default */
  async countDown(no: string, depth: number): Promise<number> {
    return depth === 0 ? 0 : 1 + (await this.countDown(no, depth - 1));
  }
  /** @redisLock businessFlag=once keyName=no lockTime=10m lockAtLeast=10m retryTimes=0 onFailure=skip store=default */
  async once(no: string): Promise<string | undefined> { return no; }
}
`;

/** Calls each function, and prints what happens. */
const PROGRAM = `import { configure, inspect, lockKey, shutdown } from "lockweave";
import { Ledger } from "./ledger.js";
declare const console: { log(...values: unknown[]): void };
declare const process: { argv: string[] };

const [, , redis = "", postgres = ""] = process.argv;
configure({ redis, stores: { ledger: { postgres } } });
const ledger = new Ledger();

/** Runs bodies that end when \`together\` of them are inside, or when no other one can come. Returns the most at once. */
async function most(together: number, calls: ((body: () => Promise<void>) => Promise<void>)[]): Promise<number> {
  let inside = 0, seen = 0;
  let open = () => {};
  const full = new Promise<void>((resolve) => (open = resolve));
  await Promise.all(calls.map((call) => call(async () => {
    inside += 1;
    seen = Math.max(seen, inside);
    if (inside === together) open();
    await full;
    inside -= 1;
  })));
  return seen;
}

async function holders(flag: string, no: string): Promise<string> {
  const count = async (store: string) => (await inspect(lockKey(flag, no), { store })).holders.length;
  return \`Redis \${await count("default")}, PostgreSQL \${await count("ledger")}\`;
}

await ledger.post("1", async () => {
  console.log("held in", await holders("moved", "1"));
  console.log("skipped:", await ledger.tryPost("1"));
});
console.log("free:", await ledger.tryPost("1"));
console.log("writers:", await most(1, [1, 2, 3].map(() => (body) => ledger.write("1", body))));
console.log("readers:", await most(3, [1, 2, 3].map(() => (body) => ledger.read("1", body))));
console.log("permits:", await most(2, [1, 2, 3, 4].map(() => (body) => ledger.few("1", body))));
console.log("transfers:", await most(1, [["a", "b"], ["b", "c"], ["c", "a"]].map((keys) => (body) => ledger.transfer(keys, body))));
console.log("reentrant:", await ledger.countDown("1", 3));
console.log("once:", await ledger.once("1"), await ledger.once("1"));
const [first, second] = [await ledger.token("1"), await ledger.token("1")];
console.log("tokens rise:", first > 0 && second > first);
console.log("token", second);
await shutdown();
`;

const HAPPENS = (where: string): string => `held in ${where}
skipped: undefined
free: 1
writers: 1
readers: 3
permits: 2
transfers: 1
reentrant: 3
once: 1 undefined
tokens rise: true
token `;

async function runIn(project: Project, file: string): Promise<string> {
  const { code, stdout, stderr } = await project.run(file, redis.url, postgres.url);
  if (code !== 0 || stderr !== "") throw new Error(stdout + stderr);
  return stdout;
}

test("tags move from Redis to PostgreSQL if only their `store` attribute changes, and tokens keep rising", async (t) => {
  const project = await makeProject({
    "src/before/ledger.ts": SERVICE,
    "src/before/main.ts": PROGRAM,
    "src/after/ledger.ts": SERVICE.replaceAll("store=default", "store=ledger"),
    "src/after/main.ts": PROGRAM,
  });
  const built = await project.tspc();
  t.is(built.code, 0, built.stdout);
  const tokens: number[] = [];
  for (const [release, where] of [
    ["before", "Redis 1, PostgreSQL 0"],
    ["after", "Redis 0, PostgreSQL 1"],
  ] as const) {
    const output = await runIn(project, `out/${release}/main.js`);
    t.is(output.replace(/\d+\n$/, ""), HAPPENS(where));
    tokens.push(Number(/token (\d+)\n$/.exec(output)?.[1]));
  }
  t.true((tokens[1] ?? NaN) > (tokens[0] ?? NaN));
});

/** The releases of docs/postgres.md, in one program. The release between the others holds both locks. */
const RELEASES = `import { configure, shutdown } from "lockweave";
declare const console: { log(...values: unknown[]): void };
declare const process: { argv: string[] };
type Body = () => Promise<void>;

class Before {
  /** @redisLock businessFlag=ledger keyName=account */
  async post(account: string, body: Body): Promise<void> { await body(); }
}
class Between {
  /** @redisLock businessFlag=ledger keyName=account */
  async post(account: string, body: Body): Promise<void> { await this.#postInBoth(account, body); }
  /** @redisLock businessFlag=ledger keyName=account store=ledger */
  async #postInBoth(account: string, body: Body): Promise<void> { await body(); }
}
class After {
  /** @redisLock businessFlag=ledger keyName=account store=ledger */
  async post(account: string, body: Body): Promise<void> { await body(); }
}

let waits = (): void => {};
const [, , redis = "", postgres = ""] = process.argv;
configure({
  redis,
  stores: { ledger: { postgres } },
  logger: { debug: (line) => { if (line.endsWith(" waits")) waits(); }, warn: (line) => console.log(line) },
});

/** Returns whether a call of the second release waits while the first one runs its body. */
async function excludes(one: Before, other: Before): Promise<boolean> {
  let isRunning = true;
  let isExcluded = true;
  let posting: Promise<void> | undefined;
  await one.post("A1", async () => {
    await new Promise<void>((resolve) => {
      waits = resolve;
      posting = other.post("A1", async () => {
        if (isRunning) isExcluded = false;
        resolve();
      });
    });
    isRunning = false;
  });
  await posting;
  return isExcluded;
}

const [before, between, after] = [new Before(), new Between(), new After()];
console.log("before, after:", await excludes(before, after), await excludes(after, before));
console.log("before, between:", await excludes(before, between), await excludes(between, before));
console.log("between, after:", await excludes(between, after), await excludes(after, between));
await shutdown();
`;

test("a release that holds both locks excludes the releases before and after it, which do not exclude each other", async (t) => {
  const project = await makeProject({ "src/main.ts": RELEASES });
  const built = await project.tspc();
  t.is(built.code, 0, built.stdout);
  t.is(
    await runIn(project, "out/main.js"),
    "before, after: false false\nbefore, between: true true\nbetween, after: true true\n",
  );
});
