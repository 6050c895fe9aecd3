import type * as Api from "@opentelemetry/api";
import type { Attributes, Meter, Span, Tracer } from "@opentelemetry/api";
import { LockOptionError } from "../base/errors";
import { isOptions, readFrom, readOptions } from "../base/options";
import { formatValue } from "../base/format-value";
import { DEFAULT_STORE } from "../base/limits";
import { listenToLocks, type GiveUpOutcome, type LockEvent, type LockListeners } from "../lock/events";

/** The API of OpenTelemetry, as the entry file has loaded it. */
export type OpenTelemetry = Pick<typeof Api, "metrics" | "SpanStatusCode" | "trace">;

/** The options of `observeLocks()`. */
export interface ObserveOptions {
  /** The tracer of the spans. Default: from the global provider. */
  readonly tracer?: Tracer;
  /** The meter of the metrics. Default: from the global provider. */
  readonly meter?: Meter;
  /** Whether spans contain the lock's key, which may identify a customer or an order. Metrics never contain it. Default `true`. */
  readonly keys?: boolean;
}

/** A lock that is waited for or held. */
interface Observed {
  readonly span: Span;
  readonly attributes: Attributes;
  isWaiting: boolean;
  isHeld: boolean;
}

const NAME = "lockweave";

/** The attribute `lockweave.outcome` of a wait without the lock. */
const OUTCOMES = {
  failed: "given up",
  skipped: "skipped",
  unreachable: "unreachable",
  abandoned: "abandoned",
} as const satisfies Record<GiveUpOutcome, string>;

/** The bucket boundaries of waits and holds, in seconds: from the latency of a nearby Redis to a time that nobody should wait. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Implements `observeLocks()`. */
export function observeLocksWith(api: OpenTelemetry, options: ObserveOptions): () => void {
  const { metrics, SpanStatusCode, trace } = api;
  const own = checked(options);
  const { tracer = trace.getTracer(NAME), meter = metrics.getMeter(NAME), keys = true } = own;
  const instruments = readFrom("The option `meter`", () => instrumentsOf(meter));
  const locks = new Map<string, Observed>();
  /** The functions and stores whose counters exist. */
  const counted = new Set<string>();

  const listeners: LockListeners = {
    "lockweave:acquire"(event) {
      const attributes = attributesOf(event);
      startAtZero(attributes);
      const span = tracer.startSpan(`lock ${event.site ?? "by hand"}`, {
        attributes: { ...attributes, ...(keys && { "lockweave.key": event.key }) },
      });
      locks.set(event.requestId, { span, attributes, isWaiting: false, isHeld: false });
    },
    "lockweave:wait"({ requestId }) {
      const lock = locks.get(requestId);
      if (lock === undefined || lock.isWaiting) return;
      lock.isWaiting = true;
      lock.span.addEvent("wait");
      instruments.contended.add(1, lock.attributes);
      instruments.waiting.add(1, lock.attributes);
    },
    "lockweave:grant"({ requestId, waitedMs, fencingToken }) {
      const lock = locks.get(requestId);
      if (lock === undefined) return;
      endOfWait(lock, waitedMs, "granted");
      lock.isHeld = true;
      instruments.held.add(1, lock.attributes);
      lock.span.addEvent("grant");
      if (fencingToken !== undefined) lock.span.setAttribute("lockweave.fencing_token", fencingToken);
    },
    "lockweave:give-up"({ requestId, waitedMs, outcome }) {
      const lock = locks.get(requestId);
      if (lock === undefined) return;
      // The caller of an abandoned lock may still wait, and its next lock of the key counts the whole time.
      endOfWait(lock, outcome === "abandoned" ? undefined : waitedMs, OUTCOMES[outcome]);
      lock.span.setAttribute("lockweave.outcome", OUTCOMES[outcome]);
      if (outcome === "failed")
        lock.span.setStatus({ code: SpanStatusCode.ERROR, message: "the lock was not granted" });
      end(requestId, lock);
    },
    "lockweave:renew"({ requestId }) {
      locks.get(requestId)?.span.addEvent("renew");
    },
    "lockweave:lost"({ requestId, reason }) {
      const lock = locks.get(requestId);
      if (lock === undefined) return;
      instruments.lost.add(1, lock.attributes);
      lock.span.setStatus({ code: SpanStatusCode.ERROR, message: reason });
    },
    "lockweave:release"({ requestId, heldMs, outcome }) {
      const lock = locks.get(requestId);
      if (lock === undefined) return;
      instruments.holds.record(heldMs / 1_000, { ...lock.attributes, "lockweave.outcome": outcome });
      lock.span.setAttribute("lockweave.outcome", outcome);
      end(requestId, lock);
    },
  };

  /** Creates the counters of a function with 0. A query cannot see that a counter rose if it began with 1. */
  function startAtZero(attributes: Attributes): void {
    const id = JSON.stringify(Object.values(attributes));
    if (counted.has(id)) return;
    counted.add(id);
    for (const counter of [instruments.contended, instruments.lost, instruments.held, instruments.waiting])
      counter.add(0, attributes);
  }

  function endOfWait(lock: Observed, waitedMs: number | undefined, outcome: string): void {
    if (waitedMs !== undefined)
      instruments.waits.record(waitedMs / 1_000, { ...lock.attributes, "lockweave.outcome": outcome });
    if (lock.isWaiting) instruments.waiting.add(-1, lock.attributes);
    lock.isWaiting = false;
  }

  function end(requestId: string, lock: Observed): void {
    if (lock.isHeld) instruments.held.add(-1, lock.attributes);
    lock.span.end();
    locks.delete(requestId);
  }

  startAtZero(attributesOf({ site: undefined, store: DEFAULT_STORE }));
  const stop = listenToLocks(listeners);
  return () => {
    stop();
    for (const [requestId, lock] of locks) {
      if (lock.isWaiting) instruments.waiting.add(-1, lock.attributes);
      end(requestId, lock);
    }
  };
}

function checked(options: ObserveOptions): ObserveOptions {
  const expected = (): LockOptionError =>
    new LockOptionError(
      `Expected observeLocks() or observeLocks({ tracer, meter, keys: false }), got ${formatValue(options)}`,
    );
  if (!isOptions(options)) throw expected();
  const own = readOptions(options, ["tracer", "meter", "keys"], expected);
  if (own.keys !== undefined && typeof own.keys !== "boolean") throw expected();
  const { tracer } = own;
  const isTracer = readFrom("The option `tracer`", () => typeof tracer?.startSpan === "function");
  if (tracer !== undefined && !isTracer) throw expected();
  return own;
}

function attributesOf({ site, store }: Pick<LockEvent, "site" | "store">): Attributes {
  return { "lockweave.site": site ?? "by hand", "lockweave.store": store };
}

function instrumentsOf(meter: Meter) {
  const advice = { explicitBucketBoundaries: SECONDS };
  return {
    waits: meter.createHistogram("lockweave.lock.wait", {
      unit: "s",
      description: "How long callers waited for a lock, by outcome",
      advice,
    }),
    holds: meter.createHistogram("lockweave.lock.hold", {
      unit: "s",
      description: "How long a lock was held, by outcome",
      advice,
    }),
    contended: meter.createCounter("lockweave.lock.contended", {
      unit: "{lock}",
      description: "Locks that were not acquired immediately",
    }),
    lost: meter.createCounter("lockweave.lock.lost", {
      unit: "{lock}",
      description: "Locks that ended before their bodies did",
    }),
    held: meter.createUpDownCounter("lockweave.lock.held", {
      unit: "{lock}",
      description: "Locks that are held now",
    }),
    waiting: meter.createUpDownCounter("lockweave.lock.waiting", {
      unit: "{lock}",
      description: "Calls that wait for a lock now",
    }),
  };
}
