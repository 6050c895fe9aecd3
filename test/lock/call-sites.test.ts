import test from "ava";
import { LockOptionError } from "../../runtime/base/errors";
import { CallSites } from "../../runtime/lock/locker";
import { LOCK_OPTIONS } from "../../runtime/lock/settings";

/** The prototype of all plain objects. */
const everyPrototype: object = Object.prototype;

/** Returns a function that passes its options on and returns how often options were processed until then. */
function counting(): (options: object, site?: string) => number {
  let count = 0;
  const callSites = new CallSites(() => (count += 1));
  return (options, site) => callSites.find(options, site, ["key", "signal"]).made;
}

test("a call site's options are processed again only when they change", (t) => {
  const ask = counting();
  t.deepEqual([ask({ lockTime: 1, key: "a" }), ask({ lockTime: 1, key: "b" })], [1, 1]); // `key` may differ each time.
  t.deepEqual([ask({ lockTime: 2, key: "a" }), ask({ lockTime: 2, key: "b" })], [2, 2]); // Another value.
  t.deepEqual([ask({ lockTime: 2, fencing: true }), ask({ lockTime: 2, fencing: true })], [3, 3]); // One more.
  t.deepEqual([ask({ fencing: true }), ask({ fencing: true })], [4, 4]); // One less.
  t.deepEqual([ask({ watchdog: true }), ask({ watchdog: true })], [5, 5]); // Another name.
  t.deepEqual([ask({ key: "a" }), ask({}), ask({ signal: 1 })], [6, 7, 8]); // Not the same names.
});

test("a call site whose values change keeps its first result and its latest one", (t) => {
  const ask = counting();
  const lockTimes = (...times: readonly number[]): number[] =>
    times.map((lockTime) => ask({ lockTime, watchdog: false }, "pay"));
  t.deepEqual(lockTimes(1, 1), [1, 1]);
  t.deepEqual(lockTimes(2, 2, 1, 2, 1), [2, 2, 1, 2, 1]);
  t.deepEqual(lockTimes(3, 3, 1, 2), [3, 3, 1, 4]);
});

test("each call site has its own result, and calls without a name share one", (t) => {
  const ask = counting();
  const all = (): number[] => ["pay", "refund", undefined].map((site) => ask({ fencing: true }, site));
  t.deepEqual([...all(), ...all()], [1, 2, 3, 1, 2, 3]);
});

test("options of another class are checked even after plain options were accepted", (t) => {
  class Inheriting {
    get key(): string {
      return "b";
    }
  }
  const ask = counting();
  t.is(ask({}), 1);
  t.is(ask(Object.create(null) as object), 1);
  t.throws(() => ask(new Inheriting()), { instanceOf: LockOptionError, message: /`key` is inherited/ });
});

test("an option that is added to the prototype later is reported at the next call", (t) => {
  const callSites = new CallSites(() => "made");
  const prototype = {};
  const options = Object.create(prototype) as { readonly key?: string };
  t.is(callSites.find(options, "pay", ["key"]).value("key"), undefined);
  Object.assign(prototype, { key: "b" });
  for (const site of ["pay", "refund"])
    t.throws(() => callSites.find(options, site, ["key"]), { message: /`key` is inherited/ });
});

test("an option's getter is read once, so later reads cannot change its value", (t) => {
  let reads = 0;
  const options = {
    get fencing(): boolean {
      reads += 1;
      return reads > 1;
    },
  };
  t.deepEqual({ ...new CallSites((own) => own).find(options, undefined, []).made }, { fencing: false });
  t.is(reads, 1);
});

test("a call reads each option once, whether its values are known, changed, or new", (t) => {
  const callSites = new CallSites((own) => ({ ...own }));
  let reads: string[] = [];
  const ask = (lockTime: number, key: string): unknown => {
    reads = [];
    const options = {
      get key() {
        reads.push("key");
        return key;
      },
      get lockTime() {
        reads.push("lockTime");
        return lockTime;
      },
    };
    const asked = callSites.find(options, "pay", ["key"]);
    return [asked.made, asked.value("key")];
  };
  for (const lockTime of [1, 1, 2, 3, 2, 1]) {
    const key = `order ${lockTime}`;
    t.like(ask(lockTime, key), [{ lockTime }, key]);
    t.deepEqual(reads, ["key", "lockTime"]);
  }
});

for (const name of [...LOCK_OPTIONS, "signal", "when", "skipValue", "site", "businessFlag", "each", "key"]) {
  test.serial(
    `a property \`${name}\` of Object.prototype is an error even at a call site that worked before`,
    (t) => {
      const callSites = new CallSites(() => "made");
      const others = ["signal", "when", "skipValue", "site", "businessFlag", "each", "key"];
      t.is(callSites.find({}, "pay", others).made, "made");
      Object.defineProperty(everyPrototype, name, { value: 5, configurable: true });
      let thrown: unknown;
      try {
        callSites.find({}, "pay", others);
      } catch (error) {
        thrown = error;
      } finally {
        Reflect.deleteProperty(everyPrototype, name);
      }
      t.true(thrown instanceof LockOptionError);
      t.regex(String(thrown), /Object\.prototype has a property/);
    },
  );
}
