import type * as TS from "typescript";
import { analyze, type Analysis } from "../../analyze/analyze";
import { readTransactions } from "../../analyze/transaction-libraries";
import type { Compiler } from "./compiler";
import type { WovenFiles } from "./woven-files";

/**
 * Analyzes how the tagged functions affect each other, in the program before the weave.
 *
 * @param config the plugin's entry. With `analyze: "error"`, all findings are errors.
 */
export function analysisOf(
  ts: Compiler,
  program: TS.Program,
  files: WovenFiles,
  { analyze: wanted, transactions }: { readonly analyze?: unknown; readonly transactions?: unknown } = {},
): Analysis {
  const tagged = [...files.values()].flatMap(({ woven, onDisk }) => {
    const source = program.getSourceFile(onDisk.fileName);
    return source === undefined
      ? []
      : [{ source, plans: woven.sites.map(({ plan }) => plan), needs: woven.needs }];
  });
  const analysis = analyze(ts, program, tagged, readTransactions(transactions).starters);
  if (wanted !== "error") return analysis;
  const findings = analysis.findings.map(({ file, problem, proof }) => ({
    file,
    problem,
    isCertain: true,
    proof,
  }));
  return { ...analysis, findings };
}
