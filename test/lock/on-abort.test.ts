import test from "ava";
import { onAbort } from "../../runtime/lock/on-abort";

test("everybody who waits for one signal is called when it aborts, once", (t) => {
  const controller = new AbortController();
  const called: string[] = [];
  for (const name of ["a", "b"]) onAbort(controller.signal, () => void called.push(name));
  controller.abort();
  t.deepEqual(called, ["a", "b"]);
});

test("who waits for a signal is called, also when another has ended its wait, even twice", (t) => {
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

test("an end that is called again does not end the wait of who came after all had gone", (t) => {
  const controller = new AbortController();
  const called: string[] = [];
  const end = onAbort(controller.signal, () => void called.push("gone"));
  end();
  onAbort(controller.signal, () => void called.push("new"));
  end();
  controller.abort();
  t.deepEqual(called, ["new"]);
});
