#!/usr/bin/env bash
# Guess: quit() of an ioredis client with Sentinel closes all of its connections, also those that `failoverDetector` opened to the sentinels.
# Seen: those stay connected and subscribed after quit(), so the process never ends by itself. disconnect() closes them.
# Versions: ioredis 5.11.1 and 6.0.0 (npm), Node 20, redis-server 7.0 with one sentinel.
# Locks: the option is what notices a master that hangs. A process that ends with `await shutdown(); await client.quit()` stays alive. Call
#   disconnect() after quit().
set -eu
W=$(mktemp -d); S=
trap 'for p in $S; do kill $p 2>/dev/null || true; done; rm -rf "$W"' EXIT
cd "$W"
P=${PORT_FROM:-25600}
while (: >"/dev/tcp/127.0.0.1/$P") 2>/dev/null || (: >"/dev/tcp/127.0.0.1/$((P + 1))") 2>/dev/null; do P=$((P + 2)); done
npm init -y >/dev/null
npm install --silent --no-audit --no-fund ioredis5@npm:ioredis@5.11.1 ioredis6@npm:ioredis@6.0.0 >/dev/null
redis-server --port "$P" --bind 127.0.0.1 --save '' --dir "$W" >/dev/null &
S=$!
printf 'port %s\nbind 127.0.0.1\nsentinel monitor locks 127.0.0.1 %s 1\n' $((P + 1)) "$P" >sentinel.conf
redis-server sentinel.conf --sentinel >/dev/null &
S="$S $!"
until redis-cli -p $((P + 1)) sentinel get-master-addr-by-name locks >/dev/null 2>&1; do sleep .1; done
cat >client.mjs <<'JS'
const [, , library, sentinel, failoverDetector, end] = process.argv;
const { Redis } = await import(library);
const sentinels = [{ host: "127.0.0.1", port: Number(sentinel) }];
const client = new Redis({ sentinels, name: "locks", failoverDetector: failoverDetector === "true" });
await client.ping();
await new Promise((resolve) => setTimeout(resolve, 1_000)); // The detector subscribes after the client is ready.
await client.quit();
if (end === "disconnect") client.disconnect();
JS
same=0
for library in ioredis5 ioredis6; do
  for how in "false quit" "true quit" "true disconnect"; do
    expected=ends
    [ "$how" = "true quit" ] && expected="does not end within 10 s"
    seen=ends
    timeout 12 node client.mjs $library $((P + 1)) $how || seen="does not end within 10 s"
    echo "$library, failoverDetector ${how% *}, ended by ${how#* }(): the process $seen"
    [ "$seen" = "$expected" ] || same=1
  done
done
exit $same
