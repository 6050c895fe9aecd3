import test from "ava";
import { sitesIn, sitesInRuntime } from "./sites";

// A timer, a tick, or a handler may serve several callers. It must not run in the async context of one of them. So each
// place in the runtime that runs a callback later uses the root context, or is listed here with a reason.

interface Exception {
  readonly file: string;
  readonly code: string;
  readonly reason: string;
}

const PASSED_ON = "The handler comes from the local queues, which wrap each of their handlers in `rooted()`.";
const ENDS_ROOTED = "It does nothing but call `end`, which is wrapped in `rooted()`.";
const FROM_STATE = "`ClientState` calls its listeners from handlers in the root context.";
const SETTLES = "It settles a promise and calls nothing of a caller.";
const RECORDS = "It records the event for a test and calls nothing of a caller.";

const EXCEPTIONS: readonly Exception[] = [
  {
    file: "lock/events.ts",
    code: "subscribe(name, hear)",
    reason:
      "Diagnostics channels call subscribers while an event is published, and `Events` chooses that context.",
  },
  {
    file: "lock/on-abort.ts",
    code: 'signal.addEventListener("abort", callAll)',
    reason: "`callAll` runs everything in the root context, and needs the signal as its `this`.",
  },
  {
    file: "config/on-signals.ts",
    code: "process.on(each, endFirstProcess)",
    reason: "It ends the process and calls nothing of a caller.",
  },
  {
    file: "queue/lock-manager.ts",
    code: "shortestTimeLeftMs: () => this.#shortestTimeLeftMs()",
    reason: "It returns a number and calls nothing of a caller.",
  },
  {
    file: "base/root-context.ts",
    code: "process.nextTick(callback)",
    reason: "`root.runInAsyncScope()` calls it.",
  },
  {
    file: "base/root-context.ts",
    code: "emitter.on(event, listener)",
    reason: "The line before wraps each listener in `rooted()`.",
  },
  {
    file: "stores/quorum/quorum.ts",
    code: "onWakeUp: (ticket) => listener.onWakeUp(ticket)",
    reason: PASSED_ON,
  },
  { file: "stores/quorum/quorum.ts", code: "onReconnect: () => listener.onReconnect()", reason: PASSED_ON },
  {
    file: "stores/quorum/quorum.ts",
    code: "onWarning: (message) => listener.onWarning(`${name}: ${message}`)",
    reason: PASSED_ON,
  },
  {
    file: "stores/quorum/quorum.ts",
    code: "shortestTimeLeftMs: () => listener.shortestTimeLeftMs?.() ?? Infinity",
    reason: "It returns a number and calls nothing of a caller.",
  },
  {
    file: "stores/redis/node-redis/topology.ts",
    code: "up: () => this.#notify(({ nodeAdded }) => nodeAdded())",
    reason: FROM_STATE,
  },
  {
    file: "stores/redis/node-redis/topology.ts",
    code: "down: () => this.#onDown(client)",
    reason: FROM_STATE,
  },
  {
    file: "stores/redis/glide/topology.ts",
    code: "up: () => this.#notify(({ nodeAdded }) => nodeAdded())",
    reason: "`#notify` calls the listeners in the root context.",
  },
  {
    file: "stores/redis/glide/topology.ts",
    code: "down: () => this.#notify(({ nodeGone }) => nodeGone())",
    reason: "`#notify` calls the listeners in the root context.",
  },
  {
    file: "stores/postgres/postgres-js/socket.ts",
    code: 'socket.once("error", fail)',
    reason: SETTLES,
  },
  {
    file: "stores/postgres/postgres-js/socket.ts",
    code: 'socket.once("error", fail).once("close", () => fail(new Error("the connection is closed")))',
    reason: SETTLES,
  },
  {
    file: "stores/postgres/postgres-js/socket.ts",
    code: 'socket.once("connect", () => {',
    reason: SETTLES,
  },
  {
    file: "stores/redis/protocol-fault.ts",
    code: 'plain.once("connect", () => plain.write("PING\\r\\n"))',
    reason: "It writes to a socket of its own and calls nothing of a caller.",
  },
  {
    file: "stores/redis/protocol-fault.ts",
    code: "socket.once(event, (data?: Uint8Array) => end(new TextDecoder().decode(data)))",
    reason: ENDS_ROOTED,
  },
  { file: "stores/redis/protocol-fault.ts", code: "socket.on(ending, onEnd)", reason: ENDS_ROOTED },
  {
    file: "stores/redis/protocol-fault.ts",
    code: "socket.setTimeout(timeoutMs, onEnd)",
    reason: ENDS_ROOTED,
  },
  {
    file: "stores/redis/protocol-fault.ts",
    code: 'signal.addEventListener("abort", onEnd)',
    reason: ENDS_ROOTED,
  },
  { file: "testing.ts", code: 'subscribe("lockweave:grant", this.#onGrant)', reason: RECORDS },
  { file: "testing.ts", code: 'subscribe("lockweave:release", this.#onRelease)', reason: RECORDS },
];

function placeOf({ file, code }: Pick<Exception, "file" | "code">): string {
  return `${file}: ${code}`;
}

test("each timer, tick, and handler of the runtime uses the root context or is listed with a reason", (t) => {
  const places = sitesInRuntime();
  t.true(places.length > 80, "the runtime has many of them");
  const unrooted = places.filter(({ isRooted }) => !isRooted).map(placeOf);
  const listed = EXCEPTIONS.map(placeOf);
  const unlisted = unrooted.filter((ticket) => !listed.includes(ticket));
  t.deepEqual(unlisted, [], "each site must use the root context or be listed with a reason");
  const gone = listed.filter((ticket) => !unrooted.includes(ticket));
  t.deepEqual(gone, [], "these listed sites are no longer in the code");
  t.true(EXCEPTIONS.every(({ reason }) => reason.endsWith(".")));
});

test("the finder reads the files that are known to have timers, ticks, and handlers", (t) => {
  const files = new Set(sitesInRuntime().map(({ file }) => file));
  for (const file of [
    "base/clock.ts",
    "base/tick-batch.ts",
    "commands/in-flight.ts",
    "lock/on-abort.ts",
    "diagnostics/slow-locks.ts",
    "stores/redis/confirmer.ts",
    "stores/redis/ioredis/subscription.ts",
  ]) {
    t.true(files.has(file), file);
  }
});

/** Returns for each site in the source whether the finder considers it rooted. */
function found(text: string): boolean[] {
  return sitesIn("small.ts", text).map(({ isRooted }) => isRooted);
}

test("the finder finds each way to run a callback later", (t) => {
  for (const source of [
    "setTimeout(look, 100);",
    "globalThis.setTimeout(() => look(), 100);",
    "const timer = setInterval(look, 100).unref();",
    "setImmediate(look);",
    "queueMicrotask(look);",
    "process.nextTick(look);",
    'client.on("ready", look);',
    'client.once("ready", () => look());',
    'client.addListener("ready", look);',
    'client.prependListener("ready", look);',
    'signal.addEventListener("abort", look, { once: true });',
    'subscribe("lockweave:grant", look);',
    "store.listen({ onWakeUp: (ticket) => look(ticket) });",
    "store.listen({ onWakeUp(ticket) { look(ticket); } });",
    "store.listen({ onWakeUp });",
    "class Look { begin() { if (this.isIdle) setTimeout(() => this.end(), 1); } }",
  ]) {
    t.deepEqual(found(source), [false], source);
  }
});

test("the finder recognizes callbacks that run in the root context", (t) => {
  for (const source of [
    "inRoot(() => setTimeout(look, 100));",
    "inRoot(() => { for (const one of all) process.nextTick(one); });",
    "listenInRoot(client, { ready: look });",
    "runInNextTick(look);",
    "runInPromiseJob(look);",
    "clock.after(100, look);",
    "clock.afterInBackground(100, look);",
    "const timer = clock.timer(look);",
    "onAbort(signal, look);",
  ]) {
    t.deepEqual(found(source), [true], source);
  }
});

test("the finder recognizes callbacks that are wrapped in rooted()", (t) => {
  t.deepEqual(found('client.on("ready", rooted(look));'), [true, true]);
  t.deepEqual(found('const onReady = rooted(look); client.on("ready", onReady);'), [true, true]);
  t.deepEqual(found("store.listen({ onWakeUp: rooted(look), onWarning() {} });"), [true, true]);
  t.deepEqual(found('const onReady = rooted(look); client.on("ready", onEnd);'), [true, false]);
  t.deepEqual(found("store.listen({ onWakeUp: rooted(look), onWarning: warn });"), [true, false, true]);
});

test("the finder does not count code after a call of inRoot() as a part of it", (t) => {
  t.deepEqual(found("inRoot(look); setTimeout(look, 100);"), [false]);
});

test("the finder ignores calls that get no callback", (t) => {
  t.deepEqual(found("subscriber.subscribe(name); clearTimeout(timer); queue.listen(listener);"), []);
});
