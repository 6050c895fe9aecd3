import test, { type ExecutionContext } from "ava";
import { LockMisconfiguredError } from "../../runtime/base/errors";
import type { WholeStore } from "../../runtime/stores/port";
import { redisStore, redisStoreAt } from "../../runtime/stores/redis/redis";
import { acquire, enqueue, newId, newKey } from "../store-contract/subject";
import { startRedis, type RedisServer } from "../support/redis-server";
import { SMALLEST_ACCESS } from "./access";
import { recordEvents } from "./noting-listener";

// Servers and proxies that lack a command, as some hosted ones do.

const COMMANDS = SMALLEST_ACCESS.split(" ").flatMap((word) => (word.startsWith("+") ? [word.slice(1)] : []));
/** Without these, locks work, but their waiters have to ask again and again. */
const FOR_WAKE_UPS = ["publish", "subscribe"];

async function serverWithout(t: ExecutionContext, command: string): Promise<RedisServer> {
  const server = await startRedis("--rename-command", command, "");
  t.teardown(() => server.stop());
  return server;
}

const STORES: Readonly<Record<string, (server: RedisServer) => WholeStore>> = {
  ioredis: (server) => redisStore(server.client({ enableReadyCheck: false })),
  "node-redis": (server) => {
    const client = server.nodeRedis();
    client.on("error", () => {});
    void client.connect().catch(() => {});
    return redisStore(client);
  },
  "a URL": ({ url }) => redisStoreAt(url),
};

for (const [name, open] of Object.entries(STORES)) {
  test(`over ${name}: the first lock names a command that the server does not have, and acquires nothing`, async (t) => {
    for (const command of COMMANDS.filter((one) => !FOR_WAKE_UPS.includes(one))) {
      const server = await serverWithout(t, command);
      const store = open(server);
      t.teardown(() => store.close());
      const key = newKey();
      const reply = await acquire(store, key, newId()).catch((error: unknown) => error);
      if (command === "info" && !(reply instanceof Error)) continue; // Only the ready check of ioredis needs it.
      if (!(reply instanceof LockMisconfiguredError)) {
        t.fail(`${command}: ${String(reply)}`);
        continue;
      }
      t.regex(
        reply.message,
        new RegExp(`does not have a command .*unknown command .*\\b${command}\\b['\`]?\\)`),
        command,
      );
      t.false(reply.message.includes("args"), reply.message);
    }
  });

  test(`over ${name}: a process warns if the server has no command for wake-ups`, async (t) => {
    for (const command of FOR_WAKE_UPS) {
      const server = await serverWithout(t, command);
      const store = open(server);
      t.teardown(() => store.close());
      const events = recordEvents(store);
      const [key, requestId] = [newKey(), newId()];
      await acquire(store, key, requestId);
      await enqueue(store, key, newId());
      await store.release({ key, requestId }, 5_000);
      t.regex(await events.warned, new RegExp(command, "i"));
    }
  });
}
