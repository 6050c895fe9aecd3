import { literalOf, type Defaults } from "../../read/options";

/** The documentation of an attribute. docs/tag.md has the same text. */
export interface About {
  /** The value that applies if the tag does not set the attribute. */
  readonly byDefault: string;
  /** One short phrase. */
  readonly meaning: string;
  /** Whole sentences that add to the meaning. */
  readonly details?: string;
  /** Values to suggest. */
  readonly values?: readonly string[];
}

const YES_OR_NO = ["true", "false"];

export const ABOUT_ATTRIBUTES: Readonly<Record<string, About>> = {
  businessFlag: {
    byDefault: "required",
    meaning: "The namespace of the key: `LOCK_<businessFlag>_<key>`",
    details: "Do not combine it with `key`.",
  },
  keyName: {
    byDefault: "none, so the flag alone is the lock",
    meaning: "The value that tells locks apart: a parameter, path, list, or expression",
    details:
      'For example, the parameter `orderNo`, the path `order.user.id` or `this.tenant`, the list `tenant,order.id`, or the quoted expression `"order.lines[0].sku"`. Names from destructured parameters work, too.',
  },
  keyType: {
    byDefault: "`VALUE`",
    meaning: "How Lockweave reads the value: as itself, an object, or JSON",
    details:
      "`VALUE` uses the value itself. `CLASS` uses a field of an object. `JSON` uses a field of JSON text, or of what `JSON.stringify` makes of the value. That includes `toJSON` and `Map`.",
    values: ["VALUE", "CLASS", "JSON"],
  },
  fieldName: {
    byDefault: "",
    meaning: "The field for `CLASS` and `JSON`: a path, or a list of paths",
  },
  keyClass: {
    byDefault: "",
    meaning: "The class or interface of the parameter, for `CLASS` and `JSON`",
    details: "The compiler checks the parameter against it.",
  },
  key: {
    byDefault: "",
    meaning: 'The whole key as a template, instead of `businessFlag`: `"mutex:${orderNo}"`',
    details:
      "Use it to share a lock with other programs. `${...}` holds a parameter, a path, or another expression. Write a text between two of them. No value may contain that text.",
  },
  when: {
    byDefault: "",
    meaning: "Acquires the lock only if this boolean is true: a path or quoted expression",
    details:
      'For example, `when="order.amount > 100"`. If it is false, the body runs without a lock, and `currentLock()` returns `undefined`.',
  },
  lockTime: {
    byDefault: "`30`",
    meaning: "The time to live of the key, in seconds or with a unit",
    details: "For example, `20`, `500ms`, `20s`, or `2m`.",
    values: ["30s", "500ms", "2m"],
  },
  retryTimes: {
    byDefault: "`3`",
    meaning: "How many times a waiter checks again",
    details: "The wait budget is `retryTimes` times `waitTime`.",
    values: ["3", "0"],
  },
  waitTime: {
    byDefault: "`5000`",
    meaning: "The time between two checks, in milliseconds or with a unit",
    details: "A release wakes the waiter earlier. That uses up no check.",
    values: ["5s", "500ms"],
  },
  onFailure: {
    byDefault: "`throw`",
    meaning: "What happens if the lock is not free within the wait budget",
    details:
      "`throw` throws a `LockWaitTimeoutError`. `skip` skips the body and resolves to `undefined`. The name of your own error class, such as `OrderBusyError`, throws that class with a message and the `cause`. If the store does not answer, all three throw `LOCK_UNREACHABLE`.",
    values: ["throw", "skip"],
  },
  onLost: {
    byDefault: "`throw`",
    meaning: "What happens if the lock ends before the body does",
    details:
      "`throw` throws a `LockLostError`, whatever the body returned. `warn` logs a warning and returns the result.",
    values: ["throw", "warn"],
  },
  watchdog: {
    byDefault: "`true`",
    meaning: "Renews the key at a third of `lockTime` while the body runs",
    values: YES_OR_NO,
  },
  lockAtLeast: {
    byDefault: "no minimum",
    meaning: "Keeps the lock for at least this long, even if the body finishes sooner",
    details: "Use it for jobs that several machines start by their clocks. It is at most `lockTime`.",
    values: ["10s", "1m"],
  },
  holdAtMost: {
    byDefault: "no limit",
    meaning: "Stops renewing this long after the lock was acquired",
    details: "A body that hangs then loses the lock, and its `signal` aborts. It is at least `lockTime`.",
    values: ["5m", "1h"],
  },
  autoUnlock: {
    byDefault: "`true`",
    meaning: "Releases the lock when the body ends",
    details: "`false` leaves the key to expire instead.",
    values: YES_OR_NO,
  },
  release: {
    byDefault: "`awaited`",
    meaning: "Whether the caller waits for the reply to the release",
    details:
      "`background` does not wait, which saves a round trip. If only that reply shows that the lock was lost, Lockweave reports the loss in the log and the events.",
    values: ["awaited", "background"],
  },
  reentrant: {
    byDefault: "`false`",
    meaning: "Lets the async context that holds the key acquire it again",
    details:
      "Lockweave counts the entries. All branches of a `Promise.all` inside the body share the context, so all of them enter.",
    values: YES_OR_NO,
  },
  fencing: {
    byDefault: "`false`",
    meaning: "Draws a fencing token, which rises with each holder",
    values: YES_OR_NO,
  },
  store: {
    byDefault: "`default`",
    meaning: "The store, by its name in `configure({ stores })`",
    details: "`default` is the store of `redis` or `store`. The same key is a different lock in each store.",
    values: ["default"],
  },
  replicas: {
    byDefault: "`0`",
    meaning: "The number of replicas that must confirm the lock and each renewal",
    details: "A failover to one of them does not lose the lock.",
    values: ["1", "0"],
  },
  mode: {
    byDefault: "`write`",
    meaning: "`write` holds the lock alone. `read` shares it with other readers",
    details:
      "Any number of readers may hold the lock. Readers and writers wait in one queue, and readers in a row enter together. The body of a reader may read again. If it asks to write, that is an error.",
    values: ["read", "write"],
  },
  permits: {
    byDefault: "`1`",
    meaning: "How many callers may hold the lock at once, at most 1,000",
    details: "If callers use two numbers, the smaller one applies, and Lockweave warns.",
    values: ["5"],
  },
  each: {
    byDefault: "`false`",
    meaning: "Makes each part of `keyName`, and each array element, a key of its own",
    details: "Acquires all keys or none, at most 256. Their order does not matter.",
    values: YES_OR_NO,
  },
};

/** Returns the documentation of an attribute in Markdown, for hovers and suggestions. */
export function aboutAttribute(name: string, defaults: Defaults): string {
  const about = ABOUT_ATTRIBUTES[name];
  if (about === undefined) return "";
  const { byDefault, meaning, details } = about;
  const ofProject = literalOf(defaults.get(name));
  const value = ofProject === undefined ? byDefault : `\`${String(JSON.parse(ofProject))}\` in this project`;
  const sentence = value === "required" ? "Required." : value === "" ? "" : `Default: ${value}.`;
  return [details === undefined ? `${meaning}.` : `${meaning}. ${details}`, sentence]
    .filter((text) => text !== "")
    .join("\n\n");
}
