// A process of callers for `npm run bench -- shared`. It runs the built package: 32 processes that compile it would take a minute.
import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as turn } from "node:timers/promises";
import { configure, shutdown, withLock } from "../dist/runtime/index.js";

/** @type {{ url: string, callers: number, options?: import("../dist/runtime/index.js").LockOptions, key?: string, hasEmptyBody?: boolean }} */
const { url, callers, options, key, hasEmptyBody = false } = JSON.parse(process.argv[2] ?? "");

const WARM_UP_SECTIONS = 3_000;

let warnings = 0;
configure({ redis: url, woven: false, logger: { warn: () => void (warnings += 1) } });

/** @param {number} caller */
const keyOf = (caller) => key ?? `LOCK_${process.pid}_${caller}`;

let [sections, failures] = [0, 0];

async function section() {
  if (!hasEmptyBody) await turn();
  sections += 1;
}

const storage = new AsyncLocalStorage();

/** As many turns of the event loop as with a lock, and an async context, but no lock. */
async function withoutLock() {
  await turn();
  await storage.run({}, section);
  await turn();
}

/** @param {number} caller */
async function come(caller) {
  try {
    if (options === undefined) await withoutLock();
    else await withLock(keyOf(caller), options, section);
  } catch {
    failures += 1;
  }
}

/**
 * @param {number} caller
 * @param {number} endsAt
 */
async function comeAgain(caller, endsAt) {
  while (performance.now() < endsAt) await come(caller);
}

/** @param {number} forMs with 0, each caller comes once */
async function play(forMs) {
  [sections, failures, warnings] = [0, 0, 0];
  const startedAt = performance.now();
  const cpuBefore = process.cpuUsage();
  const all = Array.from({ length: callers }, (_, caller) => caller);
  await Promise.all(
    forMs === 0
      ? all.map((caller) => come(caller))
      : all.map((caller) => comeAgain(caller, startedAt + forMs)),
  );
  const { user, system } = process.cpuUsage(cpuBefore);
  const { maxRSS } = process.resourceUsage();
  const tookMs = performance.now() - startedAt;
  return { sections, failures, warnings, tookMs, cpuMs: (user + system) / 1_000, maxRSS };
}

process.on("message", async (forMs) => {
  process.send?.(await play(Number(forMs)));
});
process.on("disconnect", async () => {
  await shutdown();
  process.exit();
});

// Cold code takes ten times as long. Each process has few sections of its own when there are many processes.
for (let round = 0; round < WARM_UP_SECTIONS / 100; round += 1) {
  const warmUp = () => withLock(`LOCK_warm_up_${process.pid}`, options ?? {}, async () => {});
  await Promise.all(Array.from({ length: 100 }, warmUp));
}
process.send?.("ready");
