import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import type { Script } from "../../runtime/stores/redis/scripts/script";

/** What the counted text calls. */
interface Counters {
  lockweaveReached(region: string): void;
  /** Says which region the text of a script is. */
  lockweaveText(region: string, text: string): string;
  /** Says from which texts a script was made, whose regions are reached when it is sent. */
  lockweaveScript(script: Script, texts: readonly string[]): Script;
  /** Tells of each region again. */
  lockweaveForget(): void;
}

export const counters = globalThis as unknown as Counters;

/** Which test it is that runs, told in a file beside that of the regions. */
export const testAt = (path: string): string => `${path}.test`;

/** To all processes, also those that live longer than a test: what is reached from now on, another test reaches. */
export function beginTest(path: string, number: number): void {
  writeFileSync(testAt(path), String(number));
}

/** Tests may put a virtual clock in its place. */
const setImmediateReally = setImmediate;

/** Makes what the counted text calls: it writes each region to the file when it runs for the first time in a test. */
export function countInto(path: string): void {
  const seen = new Set<string>();
  const regionOfText = new Map<string, string>();
  let test = "";
  let isLookedUp = false;
  // Once in each turn of the event loop: no other test begins within one.
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
    appendFileSync(path, `${region}\n`); // At once: the process may be killed.
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
