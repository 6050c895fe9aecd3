import type * as TS from "typescript";
import { problem } from "../../text/problems";
import { pathText, spotOfCall, tagOf, type Finding } from "../finding";
import type { Reached } from "../reach";

/** Finds locks that may end while their body still waits for another lock. */
export function outlastsLock(ts: typeof TS, reached: readonly Reached[]): Finding[] {
  return reached.flatMap(({ from, to, path }): Finding[] => {
    if (from.endsAfterMs === Infinity || to.budgetMs < from.endsAfterMs || to.family === from.family)
      return [];
    const at = tagOf(from);
    const ends = `${inSeconds(from.endsAfterMs)} (\`${from.endsBy}\`)`;
    const words = [
      from.name,
      ends,
      to.name,
      to.budgetMs === Infinity ? "forever" : inSeconds(to.budgetMs),
      pathText(ts, from, path),
    ];
    return [
      {
        file: at.file,
        problem: problem("outlastsLock", at, ...words),
        isCertain: false,
        proof: [at, ...path.map((step) => spotOfCall(ts, step)), tagOf(to)],
      },
    ];
  });
}

function inSeconds(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : `${Number((ms / 1_000).toFixed(1))} s`;
}
