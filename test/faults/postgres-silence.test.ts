import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import test from "ava";
import { startChild } from "../support/child";
import { startPostgres, type PostgresServer } from "../support/postgres-server";
import { KINDS } from "../stores/postgres/kinds";
import type { PostgresReport } from "./children/postgres-connections";
import { inMatrix, isMatrix } from "../support/suites";

let server: PostgresServer;
test.before(async () => {
  if (!isMatrix) return;
  server = await startPostgres();
});
test.after.always(async () => {
  if (isMatrix) await server.stop();
});

/** A network that goes silent: nothing arrives any more, and no connection breaks. */
async function startNetwork() {
  const sockets: Socket[] = [];
  let isSilent = false;
  const proxy = createServer({ allowHalfOpen: true }, (client) => {
    const upstream = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.push(from);
      from.on("data", (data) => void (isSilent || to.write(data)));
      from.on("error", () => {});
    }
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return {
    url: `postgres://postgres@127.0.0.1:${(proxy.address() as AddressInfo).port}/postgres`,
    goSilent: () => void (isSilent = true),
    stop() {
      for (const socket of sockets) socket.destroy();
      proxy.close();
    },
  };
}

for (const { name } of KINDS) {
  inMatrix(
    `${name}: nothing keeps the process alive after close(), even if the network is silent`,
    async (t) => {
      const network = await startNetwork();
      const child = startChild<PostgresReport>("postgres-connections.ts", { url: network.url, kind: name });
      t.teardown(async () => {
        await child.kill();
        network.stop();
      });
      await child.reported(({ event }) => event === "listening");
      network.goSilent();
      child.tell("close");
      t.deepEqual(await child.ended, { code: 0, signal: null });
      t.is(child.reports.at(-1)?.event, "closed");
      t.is(child.complaints, "");
    },
  );
}
