// The program that runtimes.ts runs on each runtime, woven in each way. Its arguments are one of the `ACTS`, the store, and the server.

const TAGGED = `import { currentLock, type HeldLock } from "lockweave";

/** @redisLock businessFlag=pay keyName=orderNo lockTime=6s waitTime=60s */
export async function pay(orderNo: string, body: (lock: HeldLock) => Promise<void>): Promise<void> {
  await body(currentLock());
}

/** @redisLock businessFlag=ship keyName=orderNo lockTime=60s waitTime=60s */
export async function ship(orderNo: string, body: (lock: HeldLock) => Promise<void>): Promise<void> {
  await body(currentLock());
}
`;

const STORES = `import { Redis } from "ioredis";
import { createClient } from "redis";
import { configure, memoryStore, type Configuration } from "lockweave";

/** Configures the store of that name. Returns a function that closes the client, if the program has one. It works without a connection. */
export async function open(store: string, url: string, options: Configuration = {}): Promise<() => unknown> {
  if (store === "memory") {
    configure({ store: memoryStore(), ...options });
    return () => {};
  }
  if (store === "url") {
    configure({ redis: url, ...options });
    return () => {};
  }
  if (store === "ioredis") {
    const client = new Redis(url);
    client.on("error", () => {});
    configure({ redis: client, ...options });
    return () => client.disconnect();
  }
  if (store === "bun") {
    const client = new globalThis.Bun.RedisClient(url);
    configure({ redis: client, ...options });
    return () => client.close();
  }
  const client = createClient({ url });
  client.on("error", () => {}); // The locks report it.
  configure({ redis: client, ...options });
  await client.connect();
  return () => client.destroy();
}
`;

/** Enters the lock again and again. In each section, Redis says whether another caller is inside. The test spares connections named "judge". */
const CONTEND = `import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { ship } from "./tagged.ts";

export async function contend(name: string, url: string, sections: number, callers: number): Promise<void> {
  const redis = new Redis(url, { connectionName: "judge" });
  redis.on("error", () => {});
  await redis.incr("ready");
  while (Number(await redis.get("ready")) < callers) await pause(5);
  for (let section = 0; section < sections; section += 1) {
    await ship("A1", async () => {
      if ((await redis.set("inside", name, "NX")) === null) await redis.incr("overlaps");
      await pause(5);
      await redis.del("inside");
      await redis.rpush("entered", name);
    });
  }
  redis.disconnect();
}
`;

const WORKER = `import { parentPort, workerData } from "node:worker_threads";
import { shutdown } from "lockweave";
import { contend } from "./contend.ts";
import { open } from "./stores.ts";

const { store, url, sections } = workerData;
const close = await open(store, url);
await contend("thread", url, sections, 2);
await shutdown();
await close();
parentPort?.postMessage("done");
`;

const MAIN = `import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { shutdown } from "lockweave";
import { contend } from "./contend.ts";
import { open } from "./stores.ts";
import { pay, ship } from "./tagged.ts";

const [act = "", store = "", url = "", sections = "0"] = process.argv.slice(2);

/** Each returns what the program prints. */
const ACTS: Record<string, () => Promise<string>> = {
  async sections() {
    const close = await open(store, url);
    const order: string[] = [];
    const first = pay("A1", async (lock) => {
      order.push("first enters");
      for (let renewals = 0, before = lock.remaining(); renewals < 2; before = lock.remaining()) {
        await pause(20);
        if (lock.remaining() > before) renewals += 1;
        lock.assertHeld();
      }
      order.push("its lock is renewed twice");
    });
    const second = pay("A1", async () => {
      order.push("second enters");
    });
    await Promise.all([first, second]);
    await shutdown();
    await close();
    return order.join(", ");
  },

  /** The test kills connections, and Lockweave warns of that. */
  async contend() {
    const close = await open(store, url, { logger: { warn: () => {} } });
    await contend(String(process.pid), url, Number(sections), 2);
    await shutdown();
    await close();
    return "done";
  },

  async threads() {
    const close = await open(store, url);
    const file = import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js";
    const workerData = { store, url, sections: Number(sections) };
    const worker = new Worker(new URL(file, import.meta.url), { workerData });
    const finished = once(worker, "message");
    await contend("main", url, Number(sections), 2);
    await finished;
    await worker.terminate();
    await shutdown();
    await close();
    return "done";
  },

  /** The test sends the signal. */
  async signal() {
    await open(store, url, { shutdownOn: ["SIGTERM"] });
    setInterval(() => {}, 60_000); // An application has something that keeps it alive.
    await ship("A1", async () => {
      console.log("holds");
      await pause(500);
    });
    return "released";
  },
};

console.log(await ACTS[act]?.());
`;

export const FILES = {
  "src/tagged.ts": TAGGED,
  "src/stores.ts": STORES,
  "src/contend.ts": CONTEND,
  "src/worker.ts": WORKER,
  "src/main.ts": MAIN,
};
