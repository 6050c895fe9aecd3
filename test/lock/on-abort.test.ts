import test from "ava";
import { isReasonOf, onAbort, unlessAborted } from "../../runtime/lock/on-abort";

test("every listener of a signal is called once when the signal aborts", (t) => {
  const controller = new AbortController();
  const called: string[] = [];
  for (const name of ["a", "b"]) onAbort(controller.signal, () => void called.push(name));
  controller.abort();
  t.deepEqual(called, ["a", "b"]);
});

test("removing one listener, even twice, does not remove another", (t) => {
  const controller = new AbortController();
  const called: string[] = [];
  const wait = (name: string): (() => void) => onAbort(controller.signal, () => void called.push(name));
  const endEarly = wait("early");
  wait("first");
  endEarly();
  endEarly();
  controller.abort();
  t.deepEqual(called, ["first"]);
});

test("a repeated removal does not remove a listener that was added after the last one was gone", (t) => {
  const controller = new AbortController();
  const called: string[] = [];
  const end = onAbort(controller.signal, () => void called.push("gone"));
  end();
  onAbort(controller.signal, () => void called.push("new"));
  end();
  controller.abort();
  t.deepEqual(called, ["new"]);
});

test("a promise rejects with the reason of a signal that has aborted already", async (t) => {
  const signal = AbortSignal.abort(new Error("enough"));
  const endless = new Promise<never>(() => {});
  await t.throwsAsync(unlessAborted(endless, signal), { message: "enough" });
});

test("a signal without a reason, as of the package abort-controller, rejects with one AbortError", async (t) => {
  const { signal } = new AbortController();
  Object.defineProperties(signal, { aborted: { value: true }, reason: { value: undefined } });
  const endless = new Promise<never>(() => {});
  const error = await t.throwsAsync(unlessAborted(endless, signal), { any: true });
  t.like(error, { name: "AbortError" });
  t.true(isReasonOf(signal, error));
  t.false(isReasonOf(new AbortController().signal, undefined));
});
