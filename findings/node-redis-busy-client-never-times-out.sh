#!/usr/bin/env bash
# Guess: with `socketTimeout`, node-redis and ioredis close a connection on which no reply has come for that long.
# Seen: ioredis does. In node-redis, each command that the client writes starts the time again. An application that sends a command more often
#   than that never notices a dead connection: no command is answered, no event is emitted, and the client keeps the connection.
# Versions: redis 5.12.1 and 6.3.1, ioredis 6.0.0 (npm), Node 20, redis-server 7.0.
# Locks: while callers ask for locks, a dead connection stays. A store needs its own timer for each command, and its own check of a silent
#   connection.
set -eu
W=$(mktemp -d); S=
trap '[ -z "$S" ] || kill $S 2>/dev/null || true; rm -rf "$W"' EXIT
cd "$W"
P=${PORT_FROM:-25500}
while (: >"/dev/tcp/127.0.0.1/$P") 2>/dev/null || (: >"/dev/tcp/127.0.0.1/$((P + 1))") 2>/dev/null; do P=$((P + 2)); done
npm init -y >/dev/null
npm install --silent --no-audit --no-fund redis5@npm:redis@5.12.1 redis6@npm:redis@6.3.1 ioredis@6.0.0 >/dev/null
redis-server --port "$P" --bind 127.0.0.1 --save '' --dir "$W" >/dev/null &
S=$!
cat >client.mjs <<'JS'
import { connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

const port = Number(process.argv[2]);
const SOCKET_TIMEOUT_MS = 1_000;
const WATCHED_MS = 6_000;
let isDead = false;

/** Passes bytes on. A dead route accepts the commands, and returns no replies. */
createServer((client) => {
  const server = connect(port, "127.0.0.1");
  const isOnDeadRoute = () => isDead && client.wasOpenBefore;
  for (const socket of [client, server]) socket.on("error", () => {});
  client.wasOpenBefore = !isDead;
  client.on("data", (bytes) => isOnDeadRoute() || server.write(bytes));
  server.on("data", (bytes) => isOnDeadRoute() || client.write(bytes));
  client.on("close", () => server.destroy());
}).listen(port + 1, "127.0.0.1");

async function nodeRedis(library, onError) {
  const { createClient } = await import(library);
  const socket = { host: "127.0.0.1", port: port + 1, socketTimeout: SOCKET_TIMEOUT_MS };
  const client = createClient({ socket });
  client.on("error", onError);
  await client.connect();
  return { ping: () => client.ping(), close: () => client.isOpen && client.destroy() };
}

async function ioredis(onError) {
  const { Redis } = await import("ioredis");
  const client = new Redis({ host: "127.0.0.1", port: port + 1, socketTimeout: SOCKET_TIMEOUT_MS });
  client.on("error", onError);
  await client.ping();
  return { ping: () => client.ping(), close: () => client.disconnect() };
}

async function isNoticed(open, everyMs) {
  let error;
  isDead = false;
  const client = await open((thrown) => (error ??= thrown.message));
  isDead = true;
  const until = performance.now() + WATCHED_MS;
  for (let next = 0; error === undefined && performance.now() < until; next += 1) {
    if (next === 0 || everyMs < WATCHED_MS) client.ping().catch(() => {});
    await sleep(Math.min(everyMs, until - performance.now()));
  }
  client.close();
  return error === undefined ? `not noticed within ${WATCHED_MS} ms` : "noticed";
}

for (const [name, open] of [
  ["redis 5.12.1", (onError) => nodeRedis("redis5", onError)],
  ["redis 6.3.1", (onError) => nodeRedis("redis6", onError)],
  ["ioredis 6.0.0", ioredis],
]) {
  console.log(`${name}, one command: ${await isNoticed(open, WATCHED_MS)}`);
  console.log(`${name}, a command every 100 ms: ${await isNoticed(open, 100)}`);
}
process.exit();
JS
sleep 1
node client.mjs "$P" | tee seen
cat >expected <<'TXT'
redis 5.12.1, one command: noticed
redis 5.12.1, a command every 100 ms: not noticed within 6000 ms
redis 6.3.1, one command: noticed
redis 6.3.1, a command every 100 ms: not noticed within 6000 ms
ioredis 6.0.0, one command: noticed
ioredis 6.0.0, a command every 100 ms: noticed
TXT
cmp expected seen || { echo "behavior changed"; exit 1; }
