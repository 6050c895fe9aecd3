import type * as TS from "typescript";
import { analyze, type Analysis } from "../../analyze/analyze";
import type { Compiler } from "./compiler";
import type { WovenFiles } from "./woven-files";

/** Analyzes how the tagged functions affect each other, in the program before the weave. */
export function analysisOf(ts: Compiler, program: TS.Program, files: WovenFiles): Analysis {
  const tagged = [...files.values()].flatMap(({ woven, onDisk }) => {
    const source = program.getSourceFile(onDisk.fileName);
    return source === undefined ? [] : [{ source, plans: woven.sites.map(({ plan }) => plan) }];
  });
  return analyze(ts, program, tagged);
}
