import test from "ava";
import { SpanStatusCode } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { configure, lockKey, memoryStore, obtain, shutdown, tryObtain, withLock } from "../../runtime";
import { systemClock, type Clock } from "../../runtime/base/clock";
import { acquire, open, release } from "../../runtime/woven/entry";
import { observeLocks, type ObserveOptions } from "../../runtime/opentelemetry";
import { deferred } from "../support/deferred";
import { until } from "../support/until";

// These tests check what OpenTelemetry's own SDK exports.

const spans = new InMemorySpanExporter();
const tracer = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }).getTracer(
  "test",
);

/** Observes until the end of the test. */
function observe(options: ObserveOptions = {}): {
  readonly stop: () => void;
  /** Returns the points of each metric: its attributes, and its value or count. */
  readonly metrics: () => Promise<Record<string, (readonly [attributes: string, value: number])[]>>;
} {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const provider = new MeterProvider({ readers: [reader] });
  const stop = observeLocks({ tracer, meter: provider.getMeter("test"), ...options });
  return {
    stop,
    async metrics() {
      exporter.reset();
      await reader.forceFlush();
      const found = exporter
        .getMetrics()
        .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((one) => one.metrics));
      return Object.fromEntries(
        found.map(({ descriptor: { name }, dataPoints }) => [
          name,
          dataPoints.map(
            ({ attributes, value }) =>
              [
                Object.values(attributes).join(" "),
                typeof value === "number" ? value : (value as { count: number }).count,
              ] as const,
          ),
        ]),
      );
    },
  };
}

// The clock does not advance, because the outcome of a lock depends on how long it was held.
test.beforeEach(() => {
  spans.reset();
  const startedAt = performance.now();
  const clock: Clock = { ...systemClock, now: () => startedAt, sinceBoot: () => 0 };
  configure({ store: memoryStore({ clock }), clock, woven: false, logger: { warn() {} } });
});
test.afterEach.always(() => shutdown({ patience: "0s" }));

test.serial("each lock becomes a span with its grant, key, store, and outcome", async (t) => {
  const { stop } = observe();
  await withLock(lockKey("pay", 1), { fencing: true }, () => Promise.resolve());
  stop();
  const [span, ...others] = spans.getFinishedSpans();
  t.deepEqual(others, []);
  t.is(span?.name, "lock by hand");
  t.like(span?.attributes, {
    "lockweave.key": "LOCK_pay_1",
    "lockweave.site": "by hand",
    "lockweave.store": "default",
    "lockweave.outcome": "released",
  });
  t.is(typeof span?.attributes["lockweave.fencing_token"], "number");
  t.deepEqual(
    span?.events.map(({ name }) => name),
    ["grant"],
  );
  t.is(span?.status.code, SpanStatusCode.UNSET);
});

test.serial(
  "a lock that throws because it is not granted becomes an error span, and the metrics count holders and waiters",
  async (t) => {
    const { stop, metrics } = observe();
    const key = lockKey("pay", 2);
    const held = await obtain(key);
    await t.throwsAsync(withLock(key, { retryTimes: 0 }, () => t.fail()));
    const began = deferred();
    const waiting = withLock(key, { waitTime: "60s" }, () => Promise.resolve(began.resolve()));
    await until(async () => (await metrics())["lockweave.lock.waiting"]?.[0]?.[1] === 1);
    t.like(await metrics(), {
      "lockweave.lock.held": [["by hand default", 1]],
      "lockweave.lock.waiting": [["by hand default", 1]],
    });
    await held.release();
    await began.promise;
    await waiting;
    t.deepEqual(await metrics(), {
      "lockweave.lock.wait": [
        ["by hand default granted", 2],
        ["by hand default given up", 1],
      ],
      "lockweave.lock.hold": [
        ["by hand default handed off", 1],
        ["by hand default released", 1],
      ],
      "lockweave.lock.contended": [["by hand default", 1]],
      "lockweave.lock.lost": [["by hand default", 0]],
      "lockweave.lock.held": [["by hand default", 0]],
      "lockweave.lock.waiting": [["by hand default", 0]],
    });
    stop();
    const refused = spans.getFinishedSpans().filter(({ status }) => status.code === SpanStatusCode.ERROR);
    t.deepEqual(
      refused.map(({ status }) => status.message),
      ["the lock was not granted"],
    );
  },
);

test.serial("the span of a skipped call has no error", async (t) => {
  const { stop, metrics } = observe();
  const key = lockKey("pay", 7);
  const held = await obtain(key);
  t.is(await tryObtain(key), undefined);
  t.is(await withLock(key, { retryTimes: 0, onFailure: "skip" }, () => Promise.resolve(1)), undefined);
  const both = [key, lockKey("pay", 8)];
  t.is(await withLock(both, { retryTimes: 0, onFailure: "skip" }, () => Promise.resolve(1)), undefined);
  await held.release();
  stop();
  const all = spans.getFinishedSpans();
  t.deepEqual(
    all.filter(({ status }) => status.code === SpanStatusCode.ERROR),
    [],
  );
  t.is(all.filter(({ attributes }) => attributes["lockweave.outcome"] === "skipped").length, 3);
  const waits = Object.fromEntries((await metrics())["lockweave.lock.wait"] ?? []);
  t.is(waits["by hand default skipped"], 3);
  t.is(waits["by hand default given up"], undefined);
});

test.serial(
  "a store that does not reply is not an error with onUnreachable: skip, but has its own outcome",
  async (t) => {
    const { stop, metrics } = observe();
    const unreachable = Object.assign(memoryStore(), {
      acquire: () => Promise.reject(new Error("connect ECONNREFUSED")),
    });
    await shutdown({ patience: "0s" });
    configure({ store: unreachable, woven: false, logger: { warn() {} } });
    const skips = { retryTimes: 0, onUnreachable: "skip" } as const;
    t.is(await withLock(lockKey("pay", 9), skips, () => Promise.resolve(1)), undefined);
    stop();
    t.like(spans.getFinishedSpans()[0], {
      status: { code: SpanStatusCode.UNSET },
      attributes: { "lockweave.outcome": "unreachable" },
    });
    t.deepEqual((await metrics())["lockweave.lock.wait"], [["by hand default unreachable", 1]]);
  },
);

test.serial(
  "counters exist with 0 from the start, and those of a function from its first call",
  async (t) => {
    const { stop, metrics } = observe();
    const names = ["contended", "lost", "held", "waiting"].map((name) => `lockweave.lock.${name}`);
    t.deepEqual(await metrics(), Object.fromEntries(names.map((name) => [name, [["by hand default", 0]]])));
    const lock = open({ site: "OrderService.pay", businessFlag: "pay" }, 10);
    t.true(await acquire(lock));
    t.like(await metrics(), {
      "lockweave.lock.lost": [
        ["by hand default", 0],
        ["OrderService.pay default", 0],
      ],
      "lockweave.lock.contended": [
        ["by hand default", 0],
        ["OrderService.pay default", 0],
      ],
    });
    await release(lock);
    stop();
  },
);

test.serial("a lost lock becomes an error span with the reason, and is counted", async (t) => {
  const { stop, metrics } = observe();
  await obtain(lockKey("pay", 3));
  await shutdown({ patience: "0s" });
  t.like(await metrics(), { "lockweave.lock.lost": [["by hand default", 1]] });
  stop();
  t.like(spans.getFinishedSpans()[0]?.status, { code: SpanStatusCode.ERROR });
  t.regex(spans.getFinishedSpans()[0]?.status.message ?? "", /shutdown/);
});

test.serial("spans contain no key with keys: false, and none is recorded after stop()", async (t) => {
  const { stop } = observe({ keys: false });
  await withLock(lockKey("pay", 4), {}, () => Promise.resolve());
  t.false("lockweave.key" in (spans.getFinishedSpans()[0]?.attributes ?? {}));
  stop();
  await withLock(lockKey("pay", 5), {}, () => Promise.resolve());
  t.is(spans.getFinishedSpans().length, 1);
});

test.serial("stop() ends the open spans and resets the count of held locks", async (t) => {
  const { stop, metrics } = observe();
  await obtain(lockKey("pay", 6));
  stop();
  t.is(spans.getFinishedSpans().length, 1);
  t.like(await metrics(), { "lockweave.lock.held": [["by hand default", 0]] });
});
