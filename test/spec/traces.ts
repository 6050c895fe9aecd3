import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MOST_IDS, STEP, type Step } from "./model-trace";
import { unreachedIn } from "./verdict";
import { buildVerifier, fileOf, runVerifier } from "./verifier";

/** What the model says about traces. */
export interface Verification {
  /** For each trace, the number of the first step that the model cannot take, or `undefined` if it accepts the trace. */
  readonly rejectedAt: readonly (number | undefined)[];
  /** The statements of the model that no trace needed. */
  readonly unused: readonly string[];
}

/** Lets `lock.pml` follow traces of the real code. One verifier reads all traces. */
export function verifyTraces(traces: readonly (readonly Step[])[]): Verification {
  const folder = mkdtempSync(join(tmpdir(), "lockweave-traces-"));
  try {
    const numbers = traces.map((steps) => [steps.length, ...steps.flat()].join(" "));
    writeFileSync(join(folder, "traces"), [traces.length, ...numbers].join("\n"));
    buildVerifier(
      folder,
      "lock",
      ["TRACE", `LIVE=${MOST_IDS}`, "RENEWALS=3"],
      ["-O2", "-DSAFETY", "-DNOREDUCE", "-DVECTORSZ=2048", `-I${join(fileOf("lock"), "..")}`],
    );
    const output = runVerifier(folder, ["-m1000000", "-E", "-c0"]);
    const rejectedAt = Array.from(
      output.matchAll(/^trace \d+: (?:accepted|rejected at (\d+))/gm),
      ([, at]) => (at === undefined ? undefined : Number(at)),
    );
    if (rejectedAt.length !== traces.length || /errors: [1-9]|max search depth too small/.test(output))
      throw new Error(`The verifier failed: ${output.slice(0, 500)}`);
    return { rejectedAt, unused: unreachedIn(output) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const KINDS = new Map<number, string>(Object.entries(STEP).map(([name, kind]) => [kind, name]));

/** Describes the steps of a trace up to the one that was rejected. */
export function describeTrace(steps: readonly Step[], rejectedAt: number): string {
  return steps
    .slice(0, rejectedAt + 1)
    .map(([kind, ...values], nth) => `${nth}: ${KINDS.get(kind) ?? kind} ${values.join(" ")}`)
    .join("\n");
}
