#!/usr/bin/env bash
# Guess: once a Cluster of ioredis knows the master that replaced a frozen one, it rejects or repeats the commands that still wait for the
#   frozen one.
# Seen: it drops that node from its pool, and keeps the connection for 2 s (disconnectTimeout). If the frozen master runs again in that time,
#   the commands resolve with its replies: SET ... NX answers "OK", although the key exists at the master that the client already knows. The
#   write is lost as soon as the former master learns of the failover. node-redis rejects the command when it drops the node.
# Versions: ioredis 5.11.1 and 6.0.0, redis 6.3.1 (npm), Node 20, redis-server 7.0.
# Locks: a waiter gets a lock that another process holds. Compare the node that replied with the client's slots before you believe a reply.
set -eu
W=$(mktemp -d); S=
trap 'for pid in $S; do kill -CONT $pid; kill $pid; done 2>/dev/null || true; rm -rf "$W"' EXIT
cd "$W"
P=${PORT_FROM:-25400}
while (: >"/dev/tcp/127.0.0.1/$P") 2>/dev/null; do P=$((P + 20)); done
npm init -y >/dev/null
npm install --silent --no-audit --no-fund ioredis5@npm:ioredis@5.11.1 ioredis6@npm:ioredis@6.0.0 redis@6.3.1 >/dev/null
cat >client.mjs <<'JS'
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis6";

const [name, first, second, frozen] = process.argv.slice(2);
const host = "127.0.0.1";
const root = [{ host, port: Number(first) }, { host, port: Number(second) }];
const replica = new Redis({ host, port: Number(process.env.REPLICA) });
const until = async (isDone) => {
  while (!(await isDone())) await sleep(5);
};

async function open() {
  const library = await import(name);
  if (name === "redis") {
    const rootNodes = root.map(({ port }) => ({ url: `redis://${host}:${port}` }));
    const cluster = library.createCluster({ rootNodes });
    cluster.on("error", () => {});
    await cluster.connect();
    return {
      set: (key, value) => cluster.set(key, value, { NX: true }),
      refresh: () => void cluster._slots.rediscover().catch(() => {}),
      master: () => cluster.slots[3300].master.port,
    };
  }
  const cluster = new library.Cluster(root);
  cluster.on("error", () => {});
  await cluster.ping();
  return {
    set: (key, value) => cluster.set(key, value, "NX"),
    refresh: () => cluster.refreshSlotsCache(),
    master: () => Number(cluster.slots[3300][0].split(":")[1]),
  };
}

// "b" and "{b}…" are in slot 3300, which the first node serves.
const client = await open();
await client.set("{b}connected", "yes");
await sleep(300); // The replica gets the key.
process.kill(Number(frozen), "SIGSTOP");
const waiting = client.set("b", "late").then(String, (error) => `rejected: ${error.message}`);
await until(async () => (await replica.info("replication")).includes("role:master"));
await replica.set("b", "held at the new master");
await until(async () => {
  client.refresh();
  await sleep(20);
  return client.master() === Number(process.env.REPLICA);
});
process.kill(Number(frozen), "SIGCONT");
const reply = await Promise.race([waiting, sleep(5_000, "no reply within 5 s")]);
const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
console.log(`${name} ${version}: SET b late NX replies ${reply}, and b is "${await replica.get("b")}"`);
const isAsSeen = name === "redis" ? reply !== "OK" : reply === "OK";
process.exit(isAsSeen ? 0 : 1);
JS
same=0
for name in ioredis5 ioredis6 redis; do
  nodes=
  for i in 0 1 2 3; do
    mkdir "$name-$i"
    redis-server --port $((P + i)) --bind 127.0.0.1 --save '' --dir "$W/$name-$i" --cluster-enabled yes --cluster-port $((P + 10 + i)) \
      --cluster-node-timeout 1000 --repl-diskless-sync-delay 0 >/dev/null &
    nodes="$nodes $!"
    S="$S $!"
  done
  sleep 1
  redis-cli --cluster create "127.0.0.1:$P" "127.0.0.1:$((P + 1))" "127.0.0.1:$((P + 2))" --cluster-yes >/dev/null
  redis-cli -p $((P + 3)) cluster meet 127.0.0.1 "$P" $((P + 10)) >/dev/null
  until [ "$(redis-cli -p $((P + 3)) cluster replicate "$(redis-cli -p "$P" cluster myid)")" = OK ]; do sleep .2; done
  until redis-cli -p $((P + 3)) info replication | grep -q master_link_status:up; do sleep .2; done
  sleep 2
  set -- $nodes
  REPLICA=$((P + 3)) node client.mjs "$name" "$P" $((P + 1)) "$1" || same=1
  for pid in $nodes; do kill -CONT "$pid"; kill "$pid"; done
  wait $nodes 2>/dev/null || true
  S=
  P=$((P + 20))
done
exit $same
