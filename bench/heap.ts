import { setTimeout as pause } from "node:timers/promises";
import { queryObjects } from "node:v8";

/** Returns the bytes of reachable objects on the heap. */
export async function heapBytes(): Promise<number> {
  if (globalThis.gc === undefined) throw new Error("Expected node to be started with --expose-gc");
  for (let pass = 0; pass < 3; pass += 1) {
    await pause(10); // Calls that just ended drop their last references.
    globalThis.gc();
  }
  return process.memoryUsage().heapUsed;
}

/** Returns the number of reachable objects. Compiling code, or dropping it, does not change that number. */
export function heapObjects(): number {
  return queryObjects(Object, { format: "count" });
}
