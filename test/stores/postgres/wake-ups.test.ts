import test from "ava";
import type { NotificationListeners, PostgresPort } from "../../../runtime/stores/postgres/client-port";
import { postgresStore } from "../../../runtime/stores/postgres/postgres-store";
import type { WholeStore } from "../../../runtime/stores/port";
import { deferred } from "../../support/deferred";
import { newId, newKey, placing, TIMEOUT_MS } from "../../store-contract/subject";

const REFUSED = JSON.stringify([{ granted: false, holder: "x", free_in_ms: null, last: false }]);

/** A port whose statements all reply that the key is held, and whose notifications the test sends. */
function silentPort(): { port: PostgresPort; inboxes: string[]; listeners: Promise<NotificationListeners> } {
  const inboxes: string[] = [];
  const opened = deferred<NotificationListeners>();
  const port: PostgresPort = {
    async query(text, [first]) {
      if (!text.includes("enqueue_v1")) return [];
      const [row] = JSON.parse(String(first)) as readonly { readonly inbox: string }[];
      inboxes.push(row?.inbox ?? "");
      return [{ reply: REFUSED }];
    },
    listen(_channel, listeners) {
      opened.resolve(listeners);
      return { ping: () => undefined, replace() {}, close() {} };
    },
    async close() {},
  };
  return { port, inboxes, listeners: opened.promise };
}

const ask = async (store: WholeStore): Promise<void> =>
  void (await store.queue.enqueue(placing(newKey(), newId()), TIMEOUT_MS));

test("if no notification arrives, the store warns once, and names no channel to the server until one arrives", async (t) => {
  const { port, inboxes, listeners } = silentPort();
  const store = postgresStore(port);
  const warned = deferred<string>();
  const wakeUps: (string | undefined)[] = [];
  store.listen({
    onWakeUp: (ticket) => void wakeUps.push(ticket),
    onReconnect: () => t.fail(),
    onWarning: (message) => warned.resolve(message),
  });
  await ask(store);
  const { subscribed, message } = await listeners;
  subscribed();
  t.deepEqual(wakeUps, [undefined], "earlier notifications may be lost");
  const alive = setInterval(() => {}, TIMEOUT_MS); // The timer of the store does not keep the process alive.
  const warning = await warned.promise;
  clearInterval(alive);
  t.regex(warning, /^no notification arrives .* Fix: .*listenUrl/);
  await ask(store);
  message("probe");
  await ask(store);
  message("a ticket");
  t.deepEqual(wakeUps, [undefined, "a ticket"]);
  const [before = "", deaf, after] = inboxes;
  t.regex(before, /^lockweave_[\da-f]{32}$/);
  t.is(deaf, "");
  t.is(after, before);
  await store.close();
});

test("a new connection for wake-ups is reported, and all waiters ask again", async (t) => {
  const { port, listeners } = silentPort();
  const store = postgresStore(port);
  const seen: string[] = [];
  store.listen({
    onWakeUp: (ticket) => void seen.push(String(ticket)),
    onReconnect: () => void seen.push("reconnect"),
    onWarning: () => t.fail(),
  });
  await ask(store);
  const { subscribed, failed } = await listeners;
  subscribed();
  failed(new Error("broke"));
  subscribed();
  t.deepEqual(seen, ["undefined", "reconnect", "undefined"]);
  await store.close();
});
