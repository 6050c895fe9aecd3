import { appendFileSync } from "node:fs";
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

/** Makes what the counted text calls: it writes each region to the file when it runs for the first time. */
export function countInto(path: string): void {
  const seen = new Set<string>();
  const regionOfText = new Map<string, string>();
  const lockweaveReached = (region: string): void => {
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
          for (const text of texts) lockweaveReached(regionOfText.get(text) ?? "");
          return sha1;
        },
      };
    },
    lockweaveForget: () => seen.clear(),
  } satisfies Counters);
}
