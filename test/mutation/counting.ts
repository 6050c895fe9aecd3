import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import type { Script } from "../../runtime/stores/redis/scripts/script";

/** The functions that instrumented code calls. */
interface Counters {
  lockweaveReached(region: string): void;
  /** Registers the region of a script's text. */
  lockweaveText(region: string, text: string): string;
  /** Registers the texts of a script. Their regions count as reached when the script is sent. */
  lockweaveScript(script: Script, texts: readonly string[]): Script;
  /** Reports each region again the next time it runs. */
  lockweaveForget(): void;
}

export const counters = globalThis as unknown as Counters;

/** The path of the file with the number of the current test, next to the file of the regions. */
export const testAt = (path: string): string => `${path}.test`;

/** Tells all processes, including those that outlive a test, that the next test begins. */
export function beginTest(path: string, number: number): void {
  writeFileSync(testAt(path), String(number));
}

/** The real function. Tests may replace the global one with a virtual clock. */
const setImmediateReally = setImmediate;

/** Installs the counters. They write each region to the file when it first runs in a test. */
export function countInto(path: string): void {
  const seen = new Set<string>();
  const regionOfText = new Map<string, string>();
  let test = "";
  let isLookedUp = false;
  // Once per turn of the event loop is enough, because no test begins within one.
  const lookUpTest = (): void => {
    if (isLookedUp) return;
    isLookedUp = true;
    setImmediateReally(() => (isLookedUp = false)).unref();
    const now = readFileSync(testAt(path), "utf8");
    if (now !== test) seen.clear();
    test = now;
  };
  const lockweaveReached = (region: string): void => {
    lookUpTest();
    if (seen.has(region)) return;
    seen.add(region);
    appendFileSync(path, `${region}\n`); // Written immediately, because the process may be killed.
  };
  Object.assign(counters, {
    lockweaveReached,
    lockweaveText(region, text) {
      regionOfText.set(text, region);
      return text;
    },
    lockweaveScript({ source, sha1 }, texts) {
      return {
        source,
        get sha1() {
          for (const text of texts) {
            const region = regionOfText.get(text);
            if (region !== undefined) lockweaveReached(region);
          }
          return sha1;
        },
      };
    },
    lockweaveForget: () => seen.clear(),
  } satisfies Counters);
}
