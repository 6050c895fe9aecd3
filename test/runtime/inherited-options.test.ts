import test from "ava";
import { configure, shutdown } from "../../runtime/config/configure";
import { LockOptionError } from "../../runtime/base/errors";
import { forceRelease } from "../../runtime/admin/force-release";
import { inspect } from "../../runtime/admin/inspect";
import { obtain, tryObtain, withLock } from "../../runtime/with-lock";
import { observeLocks } from "../../runtime/opentelemetry";
import { memoryStore } from "../../runtime/stores/memory";
import { quorumStore } from "../../runtime/stores/quorum/quorum-store";
import { testLocks } from "../../runtime/testing";
import { open } from "../../runtime/woven/woven";

// Lockweave rejects options that an object inherits, and names them.

type Anything = (...args: unknown[]) => unknown;
const call = {
  configure,
  forceRelease,
  inspect,
  memoryStore,
  observeLocks,
  obtain,
  open,
  quorumStore,
  shutdown,
  testLocks,
  tryObtain,
  withLock,
} as unknown as Readonly<Record<string, Anything>>;

let bodies = 0;
const body = (): void => void (bodies += 1);

const LOCK_OPTIONS = {
  lockTime: "1s",
  retryTimes: 0,
  waitTime: "1s",
  wait: "1s",
  onFailure: "skip",
  onUnreachable: "skip",
  onLost: "warn",
  watchdog: false,
  lockAtLeast: "1s",
  holdAtMost: "1m",
  autoUnlock: false,
  release: "background",
  reentrant: true,
  fencing: true,
  store: "default",
  replicas: 0,
  mode: "read",
  permits: 2,
};
const BY_HAND = { ...LOCK_OPTIONS, when: false, signal: AbortSignal.abort() };
const URLS = ["redis://127.0.0.1:1", "redis://127.0.0.1:2", "redis://127.0.0.1:3"];

interface Boundary {
  /** All options, each with a valid value that has an effect. */
  readonly options: Readonly<Record<string, unknown>>;
  /** The required options. */
  readonly needed?: Readonly<Record<string, unknown>>;
  readonly isConfigured?: boolean;
  readonly with: (options: object) => unknown;
}

const BOUNDARIES: Readonly<Record<string, Boundary>> = {
  "configure()": {
    options: {
      redis: URLS[0],
      stores: {},
      defaults: {},
      logger: console,
      commandTimeout: "1s",
      openReleases: 0,
      shutdownOn: [],
      clock: {},
      announce: true,
      warnAfter: "1s",
      woven: false,
    },
    needed: { store: memoryStore() },
    with: (options) => call["configure"]?.(options, "woven"),
  },
  "configure() without the weave": {
    options: { woven: false },
    needed: { store: memoryStore() },
    with: (options) => call["configure"]?.(options),
  },
  "configure()'s defaults": {
    options: LOCK_OPTIONS,
    with: (defaults) => call["configure"]?.({ store: memoryStore(), defaults }, "woven"),
  },
  "a redis address": {
    options: { tls: {} },
    needed: { url: URLS[0] },
    with: (redis) => call["configure"]?.({ redis }, "woven"),
  },
  "memoryStore()": { options: { clock: {} }, with: (options) => call["memoryStore"]?.(options) },
  "quorumStore()": {
    options: { longestLockTime: "1s" },
    with: (options) => call["quorumStore"]?.(URLS, options),
  },
  "testLocks()": { options: { waiting: true }, with: (options) => call["testLocks"]?.(options, "woven") },
  "observeLocks()": {
    options: { tracer: {}, meter: {}, keys: false },
    with: (options) => call["observeLocks"]?.(options),
  },
  "withLock()": {
    options: BY_HAND,
    isConfigured: true,
    with: (options) => call["withLock"]?.("LOCK_a", options, body),
  },
  "withLock() of several keys": {
    options: BY_HAND,
    isConfigured: true,
    with: (options) => call["withLock"]?.(["LOCK_a", "LOCK_b"], options, body),
  },
  "obtain()": {
    options: BY_HAND,
    isConfigured: true,
    with: (options) => call["obtain"]?.("LOCK_a", options),
  },
  "tryObtain()": {
    options: BY_HAND,
    isConfigured: true,
    with: (options) => call["tryObtain"]?.("LOCK_a", options),
  },
  "open()": {
    options: { ...LOCK_OPTIONS, each: true, key: "LOCK_a" },
    needed: { site: "pay", businessFlag: "pay" },
    isConfigured: true,
    with: (options) => call["open"]?.(options, "A1"),
  },
  "open() without its own site": {
    options: { site: "pay" },
    needed: { businessFlag: "pay" },
    isConfigured: true,
    with: (options) => call["open"]?.(options, "A1"),
  },
  "forceRelease()": {
    options: { store: "default", now: true, from: [] },
    isConfigured: true,
    with: (options) => call["forceRelease"]?.("LOCK_a", options),
  },
  "inspect()": {
    options: { store: "default" },
    isConfigured: true,
    with: (options) => call["inspect"]?.("LOCK_a", options),
  },
  "shutdown()": {
    options: { patience: "1h" },
    isConfigured: true,
    with: (options) => call["shutdown"]?.(options),
  },
};

/** `Object.prototype`. */
const everyPrototype: object = Object.getPrototypeOf({}) as object;

/** The ways in which an object inherits a property. */
const WAYS: Readonly<
  Record<string, (needed: object, name: string, value: unknown, use: (options: object) => unknown) => unknown>
> = {
  "from a getter of a class": (needed, name, value, use) => {
    const prototype = Object.defineProperty({}, name, { get: () => value });
    return use(Object.assign(Object.create(prototype) as object, needed));
  },
  "from another object": (needed, name, value, use) =>
    use(Object.assign(Object.create({ [name]: value }) as object, needed)),
  "from Object.prototype": (needed, name, value, use) => {
    Object.defineProperty(everyPrototype, name, { value, configurable: true, writable: true });
    try {
      return use({ ...needed }); // The call checks its options before its first await.
    } finally {
      Reflect.deleteProperty(everyPrototype, name);
    }
  },
};

test.afterEach.always(() => shutdown({ patience: "0s" }));

for (const [boundary, { options, needed = {}, isConfigured = false, with: use }] of Object.entries(
  BOUNDARIES,
)) {
  for (const [way, make] of Object.entries(WAYS)) {
    test.serial(`${boundary}: rejects each option that is inherited ${way}, and names it`, async (t) => {
      if (isConfigured) configure({ store: memoryStore(), woven: false });
      bodies = 0;
      for (const [name, value] of Object.entries(options)) {
        const error = await t.throwsAsync(
          async () => await make(needed, name, value, use),
          { instanceOf: LockOptionError },
          name,
        );
        t.regex(error.message, new RegExp(`\`${name}\``));
        t.regex(
          error.message,
          way === "from Object.prototype" ? /Object\.prototype/ : /Fix: set it on the object itself/,
        );
      }
      t.is(bodies, 0);
    });
  }
}

test.serial(
  "withLock() rejects options that Object.prototype gets after the call site was checked",
  async (t) => {
    configure({ store: memoryStore(), woven: false });
    const within = async (): Promise<number> => (await inspect("LOCK_a")).holders.length;
    t.is(await withLock("LOCK_a", {}, within), 1);
    for (const [name, value] of Object.entries({ when: false, signal: "no signal", lockTime: 7 })) {
      const rejected = WAYS["from Object.prototype"]?.({}, name, value, (options) =>
        withLock("LOCK_a", options, () => t.fail("a body ran")).catch((error: unknown) => error),
      );
      t.true((await rejected) instanceof LockOptionError, name);
    }
  },
);
