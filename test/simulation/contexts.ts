import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import type { LockEvents } from "../../runtime/lock/events";

/** A call with its own async context, as a web framework gives one to each request. */
export interface Call {
  readonly name: string;
  /** Reports a problem to the world that the call is part of. */
  readonly report: (problem: string) => void;
}

/** Whether contexts are checked. Otherwise only the effects of a wrong context are found. */
export const watch = { isOn: true };

const calls = new AsyncLocalStorage<Call>();

const world = new AsyncResource("world");

/** Runs the function outside every call's context. */
export function fromOutside<T>(body: () => T): T {
  return world.runInAsyncScope(body);
}

export function inContextOf<T>(call: Call, body: () => T): T {
  return calls.run(call, body);
}

/** To be called by code that the runtime runs for several callers. It must not be in the context of any call. */
export function belongsToNobody(what: string): void {
  const call = calls.getStore();
  if (watch.isOn) call?.report(`${what} is in the context of ${call.name}`);
}

/** To be called by code that the runtime runs for this call. */
export function belongsTo(call: Call, what: string): void {
  const other = calls.getStore();
  if (watch.isOn && other !== call)
    call.report(`${what} of ${call.name} is in the context of ${other?.name ?? "nobody"}`);
}

const CHANNELS = [
  "lockweave:wait",
  "lockweave:grant",
  "lockweave:give-up",
  "lockweave:renew",
  "lockweave:lost",
  "lockweave:release",
] satisfies (keyof LockEvents)[];

for (const name of CHANNELS) subscribe(name, () => belongsToNobody(name));
