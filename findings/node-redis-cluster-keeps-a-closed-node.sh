#!/usr/bin/env bash
# Guess: if socketTimeout closes the idle connection to a node of a cluster, node-redis opens another one for the next command of that node,
#   as it does for a node without a connection.
# Seen: it keeps the closed client. Each command for the node rejects with "The client is closed", and isOpen of the cluster stays true. Only a
#   reconnectStrategy of the application's own prevents this.
# Versions: redis 5.12.1 and 6.3.1 (npm), Node 20, redis-server 7.0 with one node that serves all slots.
# Locks: each idle node is lost for good, so a lock cannot be acquired although the cluster looks connected. Warn of the option, or watch each node.
set -eu
W=$(mktemp -d); S=
trap '[ -z "$S" ] || kill $S 2>/dev/null || true; rm -rf "$W"' EXIT
cd "$W"
P=${PORT_FROM:-25500}
while (: >"/dev/tcp/127.0.0.1/$P") 2>/dev/null || (: >"/dev/tcp/127.0.0.1/$((P + 10000))") 2>/dev/null; do P=$((P + 2)); done
npm init -y >/dev/null
npm install --silent --no-audit --no-fund redis5@npm:redis@5.12.1 redis6@npm:redis@6.3.1 >/dev/null
redis-server --port "$P" --bind 127.0.0.1 --save '' --dir "$W" --cluster-enabled yes >/dev/null &
S=$!
until redis-cli -p "$P" cluster addslotsrange 0 16383 >/dev/null 2>&1; do sleep .1; done
until redis-cli -p "$P" cluster info | grep -q cluster_state:ok; do sleep .1; done
cat >client.mjs <<'JS'
import { setTimeout as sleep } from "node:timers/promises";

const rootNodes = [{ url: `redis://127.0.0.1:${process.argv[2]}` }];
const outcome = (call) =>
  Promise.race([
    call.then(
      (reply) => `resolved ${reply}`,
      (error) => `rejected ${error.message}`,
    ),
    sleep(3_000, "pending after 3 s"),
  ]);
let isSame = true;
const expect = (what, seen, expected) => {
  isSame &&= seen === expected;
  console.log(`  ${what}: ${seen}`);
};

for (const library of ["redis5", "redis6"]) {
  const { createCluster } = await import(library);
  console.log(library);
  const open = async (options) => {
    const cluster = createCluster({ rootNodes, defaults: { socket: { socketTimeout: 500, ...options } } });
    cluster.on("error", () => {});
    await cluster.connect();
    expect("first command", await outcome(cluster.get("k")), "resolved null");
    return cluster;
  };
  const byDefault = await open({});
  const reconnecting = await open({ reconnectStrategy: () => 50 });
  await sleep(2_000);
  for (const nth of ["second", "third"]) {
    expect(`${nth} command, later`, await outcome(byDefault.get("k")), "rejected The client is closed");
    await sleep(1_500);
  }
  expect("isOpen", String(byDefault.isOpen), "true");
  expect("with a reconnectStrategy", await outcome(reconnecting.get("k")), "resolved null");
}
process.exit(isSame ? 0 : 1);
JS
node client.mjs "$P"
