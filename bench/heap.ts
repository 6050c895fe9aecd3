import { setTimeout as pause } from "node:timers/promises";
import { queryObjects } from "node:v8";

/** What the heap holds that somebody still refers to. */
export async function heapBytes(): Promise<number> {
  if (globalThis.gc === undefined) throw new Error("Expected node to be started with --expose-gc");
  for (let pass = 0; pass < 3; pass += 1) {
    await pause(10); // What just ended lets go of its last references.
    globalThis.gc();
  }
  return process.memoryUsage().heapUsed;
}

/** How many objects somebody still refers to. Code that gets compiled or dropped does not change it. */
export function heapObjects(): number {
  return queryObjects(Object, { format: "count" });
}
