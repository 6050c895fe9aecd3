import { MOST_KEYS, MS_PER_UNIT } from "../base/limits";
import { ATTRIBUTE_NAMES, ATTRIBUTES, type AttributeName } from "./tag-attributes";

// The documentation of the attributes, for the editor and for docs/attributes.md. The runtime does not load this file. After a change, run
// `node --require ts-node/register/transpile-only build/attribute-reference.ts`.

/** The documentation of an attribute. */
export interface About {
  /** The value that applies if the tag does not set the attribute. */
  readonly byDefault: string;
  /** One short phrase. */
  readonly meaning: string;
  /** Whole sentences that add to the meaning. */
  readonly details?: string;
  /** Values to suggest. */
  readonly values: readonly string[];
}

interface Texts extends Pick<About, "meaning" | "details"> {
  /** For attributes whose default is not a value. */
  readonly byDefault?: string;
  /** Values to suggest, for attributes that may have many. */
  readonly examples?: readonly string[];
}

const TEXTS: Readonly<Record<AttributeName, Texts>> = {
  businessFlag: {
    byDefault: "required",
    meaning: "The namespace of the key: `LOCK_<businessFlag>_<key>`",
  },
  keyName: {
    byDefault: "none, so the flag alone is the lock",
    meaning: "The value that tells locks apart: a parameter, path, list, or expression",
    details:
      'For example, the parameter `orderNo`, the path `order.user.id` or `this.tenant`, the list `tenant,order.id`, or the quoted expression `"order.lines[0].sku"`. Destructured parameters work, too.',
  },
  keyType: {
    meaning: "How Lockweave reads the value: as is, as an object, or as JSON",
    details:
      "`VALUE` uses the value itself. `CLASS` uses a field of an object. `JSON` uses a field of JSON text, or of the result of `JSON.stringify(value)`.",
  },
  keyClass: {
    meaning: "The class or interface of the parameter, for `CLASS` and `JSON`",
    details: "The compiler checks the parameter against it.",
  },
  fieldName: {
    meaning: "The field for `CLASS` and `JSON`: a path, or a list of paths",
  },
  key: {
    meaning: 'The whole key as a template, instead of `businessFlag`: `"mutex:${orderNo}"`',
    details:
      "Use it to share a lock with other programs. `${...}` contains a parameter, a path, or another expression. Separate two values by text that neither of them contains.",
  },
  when: {
    meaning: "Acquires the lock only if this boolean is true: a path or quoted expression",
    details:
      'For example, `when="order.amount > 100"`. If the condition is false, the body runs without a lock, and `currentLock()` returns `undefined`.',
  },
  signal: {
    byDefault: "none",
    meaning: "A path to an `AbortSignal` that ends the wait: `request.signal`, `this.signal`",
    details:
      "The call then rejects with the signal's reason. The signal does not end a running body. If the path is `undefined`, as `options?.signal` may be, there is no signal.",
  },
  skipValue: {
    byDefault: "`undefined`",
    meaning: "What a skipped call returns: a path or quoted expression",
    details:
      'It distinguishes a skip from a result that may be `undefined`, and needs `onFailure=skip` or `onUnreachable=skip`. For example, `skipValue="false"`, `skipValue="SKIPPED"` for a constant, or `skipValue="{ status: \'busy\' }"`. The compiler checks it against the return type. Only a skipped call evaluates it.',
  },
  lockTime: {
    meaning: "The time to live of the key, in seconds or with a unit",
    details: "For example, `20`, `500ms`, `20s`, or `2m`.",
    examples: ["30s", "500ms", "2m"],
  },
  retryTimes: {
    meaning: "How many times a waiter checks again",
    details: "The wait budget is `retryTimes` times `waitTime`.",
    examples: ["3", "0"],
  },
  waitTime: {
    meaning: "The time between two checks, in milliseconds or with a unit",
    details: "A release wakes the waiter earlier, which does not count as a check.",
    examples: ["5s", "500ms"],
  },
  wait: {
    byDefault: "`retryTimes` times `waitTime`",
    meaning: "The whole wait budget, with a unit, instead of `retryTimes` and `waitTime`",
    details:
      "`wait=0` tries once, as `tryObtain()` does. `wait=forever` ends by `signal`, by `shutdown()`, or with `LOCK_MISCONFIGURED`. Waiters still check every `waitTime` of `configure({ defaults })`, which is 5 s by default. In a tag, `wait` replaces the plugin's `retryTimes` and `waitTime`, and each of these replaces the plugin's `wait`.",
    examples: ["5s", "500ms", "0", "forever"],
  },
  onFailure: {
    meaning: "What happens if the lock is not free within the wait budget",
    details:
      "`throw` throws a `LockWaitTimeoutError`. `skip` skips the body and returns `undefined`, or `skipValue`. An error class, such as `OrderBusyError`, is thrown with a message and the `cause`. If the store does not answer, `onUnreachable` applies instead.",
  },
  onUnreachable: {
    meaning: "What happens if the store does not answer within the wait budget",
    details:
      "`throw` throws a `LockUnreachableError`. `skip` skips the body and returns `undefined`, or `skipValue`. The body never runs without the lock, and a lock that is granted too late is released. `LOCK_MISCONFIGURED` is always thrown.",
  },
  onLost: {
    meaning: "What happens if the lock ends before the body does",
    details:
      "`throw` throws a `LockLostError`, even if the body returned a value. `warn` logs a warning and returns the result.",
  },
  watchdog: {
    meaning: "Renews the key at a third of `lockTime` while the body runs",
  },
  lockAtLeast: {
    byDefault: "no minimum",
    meaning: "Keeps the lock for at least this long, even if the body finishes sooner",
    details: "Use it for jobs that several machines start at the same time. It must not exceed `lockTime`.",
    examples: ["10s", "1m"],
  },
  holdAtMost: {
    byDefault: "no limit",
    meaning: "Stops renewing this long after the lock was acquired",
    details:
      "A body that hangs then loses the lock, and its `signal` aborts. `holdAtMost` must be at least `lockTime`.",
    examples: ["5m", "1h"],
  },
  autoUnlock: {
    meaning: "Releases the lock when the body ends",
    details:
      "`false` leaves the key to expire instead. `onError` releases it if the body throws, and otherwise leaves it for one `lockTime` after the body.",
  },
  release: {
    meaning: "Whether the caller waits for the reply to the release",
    details:
      "With `background`, the caller does not wait, which saves a round trip. If only the reply shows that the lock was lost, Lockweave reports the loss in the log and the events.",
  },
  reentrant: {
    meaning: "Lets the async context that holds the key acquire it again",
    details:
      "Lockweave releases the lock when the last of these bodies ends. All branches of a `Promise.all` inside the body share the context, so all of them enter.",
  },
  fencing: {
    meaning: "Draws a fencing token, which rises with each holder",
  },
  store: {
    meaning: "The store, by its name in `configure({ stores })`",
    details: "`default` is the store of `redis` or `store`. The same key is a different lock in each store.",
    examples: ["default"],
  },
  replicas: {
    meaning: "The number of replicas that must confirm the lock and each renewal",
    details: "The lock survives a failover to one of them.",
    examples: ["1", "0"],
  },
  mode: {
    meaning: "`write` holds the lock alone. `read` shares it with other readers",
    details: "Readers and writers wait in one queue, and consecutive readers enter together.",
  },
  permits: {
    meaning: "How many callers may hold the lock at once",
    details: "If callers use different numbers, the smallest one applies, and Lockweave logs a warning.",
    examples: ["5"],
  },
  each: {
    meaning: "Makes each part of `keyName`, and each array element, a key of its own",
    details: `Acquires all keys or none, at most ${MOST_KEYS}. Their order does not matter.`,
  },
};

/** The documentation of every attribute. */
export const ABOUT_ATTRIBUTES: Readonly<Record<string, About>> = Object.fromEntries(
  ATTRIBUTE_NAMES.map((name) => [name, about(name)]),
);

function about(name: AttributeName): About {
  const { byDefault = defaultOf(name), examples = valuesOf(name), ...texts } = TEXTS[name];
  return { byDefault, ...texts, values: examples };
}

/** Returns the default as a tag writes it, or nothing. */
function defaultOf(name: AttributeName): string {
  const row = ATTRIBUTES[name];
  if (!("default" in row)) return "";
  if (row.kind !== "time") return `\`${row.default}\``;
  return row.unit === undefined ? "" : `\`${row.default / MS_PER_UNIT[row.unit]}\``;
}

function valuesOf(name: AttributeName): readonly string[] {
  const row = ATTRIBUTES[name];
  if (row.kind === "switch") return ["true", "false", ...("or" in row ? [row.or] : [])];
  return row.kind === "choice" ? row.values : [];
}
