import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ExecutionContext } from "ava";
import { configure, shutdown } from "../../runtime";
import { monotonicMs } from "../support/monotonic";
import { inMatrixSerially } from "../support/suites";
import { DEFECT_NAMES, isDefect, type Defect } from "./defects";
import { runRound } from "./round";
import { TOPOLOGIES } from "./topologies";

/** The time in which the checker of the histories must find a defect. */
const FOUND_WITHIN_MS = 600_000;

/** Plays rounds with the defect until the histories show a violation. Other problems, such as a call that hangs, do not count. */
async function assertFound(t: ExecutionContext, defect: Defect): Promise<void> {
  t.timeout(2 * FOUND_WITHIN_MS);
  const topology = await TOPOLOGIES[defect === "open-guard" ? "postgres" : "node"]();
  configure({ ...topology.configuration, woven: false, logger: { warn: () => {} } });
  const dir = await mkdtemp(join(tmpdir(), "lockweave-defects-"));
  t.teardown(async () => {
    await shutdown();
    await topology.stop();
    await rm(dir, { recursive: true, force: true });
  });
  const startedAt = monotonicMs();
  for (let seed = 1; monotonicMs() - startedAt < FOUND_WITHIN_MS; seed += 1) {
    const { violations } = await runRound(topology, { seed, dir, defect });
    const [first] = violations;
    if (first === undefined) continue;
    t.log(`after ${Math.round((monotonicMs() - startedAt) / 1_000)} s: ${first.message}`);
    t.pass();
    return;
  }
  t.fail("no history shows the defect");
}

for (const defect of DEFECT_NAMES.filter(isDefect)) {
  inMatrixSerially(`the histories show the planted defect ${defect}`, (t) => assertFound(t, defect));
}
