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
      'instead of `businessFlag` the whole key, as a template: `"mutex:${orderNo}"`, for locks that others have names for. In `${...}` stands a parameter or a path, as in `keyName`, or another expression; between two of them a text, and no value may have that text in it. It goes to the store as it is',
  },
  when: {
    byDefault: "",
    meaning:
      'lock only if this is true: a path, or a quoted expression (`"order.amount > 100"`), which must be a boolean. If it is false, the body runs without a lock, and `currentLock()` is `undefined` there',
  },
  lockTime: {
    byDefault: "`30`",
    meaning: "time to live of the key: seconds, or `500ms`, `20s`, `2m`",
    values: ["30s", "500ms", "2m"],
  },
  retryTimes: {
    byDefault: "`3`",
    meaning: "how often to check again; with `waitTime` it makes the wait budget",
    values: ["3", "0"],
  },
  waitTime: {
    byDefault: "`5000`",
    meaning:
      "time between two checks: milliseconds, or with a unit. A release in between wakes the waiter at once, and uses up no check",
    values: ["5s", "500ms"],
  },
  onFailure: {
    byDefault: "`throw`",
    meaning:
      "when somebody else held it for the whole budget: `throw` a `LockWaitTimeoutError`; `skip` the body and resolve to `undefined`; or throw an error class of yours: `onFailure=OrderBusyError` is created with a message and the `cause`. (A store that does not answer is `LOCK_UNREACHABLE` with each of them.)",
    values: ["throw", "skip"],
  },
  onLost: {
    byDefault: "`throw`",
    meaning:
      "when the lock ended before the body did: `throw` a `LockLostError` to the caller, whatever the body returned, or `warn` the logger and let the result count",
    values: ["throw", "warn"],
  },
  watchdog: {
    byDefault: "`true`",
    meaning: "renew the key at a third of `lockTime` while the body runs",
    values: YES_OR_NO,
  },
  lockAtLeast: {
    byDefault: "free when the body is done",
    meaning:
      "nobody may have the key before so long after it was taken, also where the body is quicker: for jobs that several machines start by their clocks. At most `lockTime`",
    values: ["10s", "1m"],
  },
  holdAtMost: {
    byDefault: "no limit",
    meaning:
      "the longest that the watchdog renews for, counted from when the lock was had: a body that hangs has lost it then, and is told, as at any deadline. At least `lockTime`",
    values: ["5m", "1h"],
  },
  autoUnlock: {
    byDefault: "`true`",
    meaning: "`false`: leave the key to expire instead of releasing it",
    values: YES_OR_NO,
  },
  release: {
    byDefault: "`awaited`",
    meaning:
      "`background`: the caller does not wait for the store's reply to the release: one round trip a section instead of two. What only that reply could tell of a lost lock then goes to the log and the events; until it is there, nobody in this process has the key",
    values: ["awaited", "background"],
  },
  reentrant: {
    byDefault: "`false`",
    meaning:
      "let the async context that holds the key in again, by count. All branches of a `Promise.all` inside the body share that context, and so all are let in",
    values: YES_OR_NO,
  },
  fencing: {
    byDefault: "`false`",
    meaning: "draw a fencing token, which rises with each holder",
    values: YES_OR_NO,
  },
  store: {
    byDefault: "`default`",
    meaning:
      "in which store: a name among `configure({ stores })`, or `default` for that of `redis` or `store`. A key is another lock in each",
    values: ["default"],
  },
  replicas: {
    byDefault: "`0`",
    meaning:
      "so many replicas of the Redis master must have the lock, and each renewal of it, before it counts as held: a fail-over to one of them does not lose it",
    values: ["1", "0"],
  },
  mode: {
    byDefault: "`write`",
    meaning:
      "`write`: held alone. `read`: shared by any number of readers. First come, first served, and readers in a row enter together. A body that reads may read again. A request to write there is refused",
    values: ["read", "write"],
  },
  permits: {
    byDefault: "`1`",
    meaning:
      "how many may hold the lock at once, at most 1,000. If callers use two numbers, the smaller applies, with a warning",
    values: ["5"],
  },
  each: {
    byDefault: "`false`",
    meaning:
      "`true`: each part of `keyName`, and each element of an array, is a key of its own. All of them are had, or none, whatever their order; at most 256",
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
