import test from "ava";
import type { PostgresPort } from "../../../runtime/stores/postgres/client-port";
import type { OpenConnection } from "../../../runtime/stores/postgres/connection";
import { Connections } from "../../../runtime/stores/postgres/connections";
import { LatePort } from "../../../runtime/stores/postgres/late-port";
import { libraryOf as pgIn } from "../../../runtime/stores/postgres/pg/library";
import { deferred, type Deferred } from "../../support/deferred";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import { until } from "../../support/until";

// Statements whose connection is not open yet, while another connection becomes free. The connections are real, but open at the test's command.

let server: PostgresServer;
const PATIENCE_MS = 60_000;

test.before(async () => {
  server = await startPostgres();
});
test.after.always(() => server.stop());

/** Returns connections that open only when the test resolves their gates, in the order in which they were created. */
function gated(most: number): { readonly port: Connections; readonly gates: readonly Deferred<void>[] } {
  const source = pgIn(require("pg"))?.at(server.url);
  const gates: Deferred<void>[] = [];
  const open: OpenConnection = (listeners) => {
    if (source === undefined) throw new Error("the installed version is too old");
    const connection = source.open(listeners);
    const gate = deferred();
    gates.push(gate);
    return {
      connect: () => gate.promise.then(() => connection.connect()),
      run: (text, values) => connection.run(text, values),
      end: () => connection.end(),
      destroy: () => connection.destroy(),
    };
  };
  return { port: new Connections(open, most), gates };
}

async function pidOf(port: PostgresPort): Promise<unknown> {
  const [row] = await port.query("SELECT pg_backend_pid() AS pid", [], PATIENCE_MS);
  return row?.["pid"];
}

test("a connection that becomes free runs the statement of a connection that is not open yet", async (t) => {
  const { port, gates } = gated(3);
  const both = [pidOf(port), pidOf(port)];
  gates[0]?.resolve();
  const [first, second] = await Promise.all(both);
  t.is(second, first);
  const third = [pidOf(port), pidOf(port)];
  t.is(gates.length, 2, "the second statement uses the connection that is still opening");
  gates[1]?.resolve();
  await Promise.all(third);
  // Once it is open, the other connection runs statements, too.
  await until(async () => new Set(await Promise.all([pidOf(port), pidOf(port)])).size === 2);
  t.is(gates.length, 2);
  await port.close();
});

test("older statements run first, wherever they wait", async (t) => {
  const { port, gates } = gated(2);
  const order: string[] = [];
  const all = ["a", "b", "c", "d"].map(async (name) => {
    await port.query("SELECT 1", [], PATIENCE_MS);
    order.push(name);
  });
  gates[1]?.resolve();
  await Promise.all(all);
  t.deepEqual(order, ["b", "a", "c", "d"]);
  gates[0]?.resolve();
  await port.close();
});

test("a connection that fails to open does not fail a statement that another connection has taken", async (t) => {
  const { port, gates } = gated(2);
  const both = [pidOf(port), pidOf(port)];
  gates[0]?.resolve();
  await Promise.all(both);
  gates[1]?.reject(new Error("refused"));
  t.not(await pidOf(port), undefined);
  await port.close();
});

test("each call of close() waits until the connections are closed, even while the library loads", async (t) => {
  const loading = deferred<PostgresPort>();
  const closing = deferred();
  const { port } = gated(1);
  const late = new LatePort(loading.promise);
  const closed: string[] = [];
  const calls = ["first", "second"].map(async (name) => {
    await late.close();
    closed.push(name);
  });
  loading.resolve({
    query: (text, values, timeoutMs) => port.query(text, values, timeoutMs),
    listen: (channel, listeners) => port.listen(channel, listeners),
    close: async () => {
      await closing.promise;
      t.deepEqual(closed, []);
      await port.close();
    },
  });
  await loading.promise;
  await new Promise(setImmediate);
  t.deepEqual(closed, []);
  closing.resolve();
  await Promise.all(calls);
  t.deepEqual(closed, ["first", "second"]);
});
