import { literalOf, type Defaults } from "../../read/options";

/** What people are told of an attribute, in the words of the README's table. */
export interface About {
  /** Without a value of its own. */
  readonly byDefault: string;
  readonly meaning: string;
  /** What to write for a value, as far as that can be known. */
  readonly values?: readonly string[];
}

const YES_OR_NO = ["true", "false"];

export const ABOUT_ATTRIBUTES: Readonly<Record<string, About>> = {
  businessFlag: {
    byDefault: "required",
    meaning: "the namespace of the key: `LOCK_<businessFlag>_<key>`. Not with `key`",
  },
  keyName: {
    byDefault: "none: the flag alone is the lock",
    meaning:
      'a parameter, a path (`order.user.id`, `this.tenant`), a list of them (`tenant,order.id`), or a quoted expression (`"order.lines[0].sku"`). Destructured parameters count',
  },
  keyType: {
    byDefault: "`VALUE`",
    meaning:
      "`VALUE`: the value itself. `CLASS`: a field of an object. `JSON`: a field of what `JSON.stringify` makes of it (`toJSON` and `Map` too), or of JSON text",
    values: ["VALUE", "CLASS", "JSON"],
  },
  fieldName: {
    byDefault: "",
    meaning: "the field for `CLASS` and `JSON`: a path, or a list of them",
  },
  keyClass: {
    byDefault: "",
    meaning: "for `CLASS` and `JSON`: a class or interface that the parameter is checked against",
  },
  key: {
    byDefault: "",
    meaning:
      'the whole key as a template, instead of `businessFlag`: `"mutex:${orderNo}"`. Use it to share a lock with other programs. `${...}` holds a parameter, a path, or another expression. Between two of them stands a text that no value may contain',
  },
  when: {
    byDefault: "",
    meaning:
      'acquires the lock only if this is true: a path, or a quoted expression (`"order.amount > 100"`) of type boolean. Otherwise the body runs without a lock, and `currentLock()` is `undefined`',
  },
  lockTime: {
    byDefault: "`30`",
    meaning: "the time to live of the key: seconds, or `500ms`, `20s`, `2m`",
    values: ["30s", "500ms", "2m"],
  },
  retryTimes: {
    byDefault: "`3`",
    meaning: "how often to check again. The wait budget is `retryTimes` times `waitTime`",
    values: ["3", "0"],
  },
  waitTime: {
    byDefault: "`5000`",
    meaning:
      "the time between two checks: milliseconds, or with a unit. A release wakes the waiter earlier, and that uses up no check",
    values: ["5s", "500ms"],
  },
  onFailure: {
    byDefault: "`throw`",
    meaning:
      "what happens if the lock is not free within the wait budget. `throw`: throws a `LockWaitTimeoutError`. `skip`: skips the body and resolves to `undefined`. An error class of yours, such as `onFailure=OrderBusyError`: throws it with a message and the `cause`. If the store does not answer, all three throw `LOCK_UNREACHABLE`",
    values: ["throw", "skip"],
  },
  onLost: {
    byDefault: "`throw`",
    meaning:
      "what happens if the lock ends before the body does. `throw`: throws a `LockLostError`, whatever the body returned. `warn`: logs a warning and returns the result",
    values: ["throw", "warn"],
  },
  watchdog: {
    byDefault: "`true`",
    meaning: "renews the key at a third of `lockTime` while the body runs",
    values: YES_OR_NO,
  },
  lockAtLeast: {
    byDefault: "free when the body is done",
    meaning:
      "keeps the lock for at least this long, even if the body finishes sooner. For jobs that several machines start by their clocks. At most `lockTime`",
    values: ["10s", "1m"],
  },
  holdAtMost: {
    byDefault: "no limit",
    meaning:
      "stops renewing this long after the lock was acquired. A body that hangs then loses the lock, and its `signal` aborts. At least `lockTime`",
    values: ["5m", "1h"],
  },
  autoUnlock: {
    byDefault: "`true`",
    meaning: "`false`: leaves the key to expire instead of releasing it",
    values: YES_OR_NO,
  },
  release: {
    byDefault: "`awaited`",
    meaning:
      "`background`: the caller does not wait for the reply to the release, which saves a round trip. If only that reply shows that the lock was lost, it goes to the log and the events",
    values: ["awaited", "background"],
  },
  reentrant: {
    byDefault: "`false`",
    meaning:
      "lets the async context that holds the key acquire it again, by count. All branches of a `Promise.all` inside the body share that context, so all of them get in",
    values: YES_OR_NO,
  },
  fencing: {
    byDefault: "`false`",
    meaning: "draws a fencing token, which rises with each holder",
    values: YES_OR_NO,
  },
  store: {
    byDefault: "`default`",
    meaning:
      "the store, by its name in `configure({ stores })`. `default` is the one of `redis` or `store`. The same key is a different lock in each store",
    values: ["default"],
  },
  replicas: {
    byDefault: "`0`",
    meaning:
      "the number of replicas that must confirm the lock and each renewal. A fail-over to one of them does not lose the lock",
    values: ["1", "0"],
  },
  mode: {
    byDefault: "`write`",
    meaning:
      "`write`: one caller holds the lock alone. `read`: any number of readers share it. First come, first served, and readers in a row enter together. Inside a reader's body, another read is allowed, and a write is an error",
    values: ["read", "write"],
  },
  permits: {
    byDefault: "`1`",
    meaning:
      "how many callers may hold the lock at once, at most 1,000. If callers use two numbers, the smaller applies, with a warning",
    values: ["5"],
  },
  each: {
    byDefault: "`false`",
    meaning:
      "`true`: each part of `keyName`, and each element of an array, is a key of its own. Acquires all of them or none, in any order, at most 256",
    values: YES_OR_NO,
  },
};

/** For people, in Markdown. */
export function aboutAttribute(name: string, defaults: Defaults): string {
  const about = ABOUT_ATTRIBUTES[name];
  if (about === undefined) return "";
  const { byDefault, meaning } = about;
  const ofProject = literalOf(defaults.get(name));
  const value = ofProject === undefined ? byDefault : `\`${String(JSON.parse(ofProject))}\` in this project`;
  const sentence = value === "required" ? "Required." : value === "" ? "" : `Default: ${value}.`;
  return [`${meaning.charAt(0).toUpperCase()}${meaning.slice(1)}.`.replace(/\.\)\.$/, ".)"), sentence]
    .filter((text) => text !== "")
    .join("\n\n");
}
