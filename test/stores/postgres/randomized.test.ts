import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { configure, shutdown } from "../../../runtime";
import { inMatrixSerially, outsideMatrix } from "../../support/suites";
import { runRound, type RoundOptions, type RoundResult } from "../../torture/round";
import { TOPOLOGIES } from "../../torture/topologies";
import type { Topology } from "../../torture/topology";

const TITLE =
  "processes never overlap while connections are killed, statements are canceled, and the server crashes";

const MOST_ROUNDS = 5;

let topology: Topology;
let dir: string;

test.before(async () => {
  topology = await TOPOLOGIES.postgres();
  configure({ ...topology.configuration, woven: false, logger: { warn: () => {} } });
  dir = await mkdtemp(join(tmpdir(), "lockweave-randomized-"));
});

test.after.always(async () => {
  await shutdown();
  await topology.stop();
  await rm(dir, { recursive: true, force: true });
});

async function play(t: ExecutionContext, options: Omit<RoundOptions, "dir">): Promise<RoundResult> {
  const result = await runRound(topology, { dir, ...options });
  const { beliefs, guards, faults, violations } = result;
  t.log(
    `seed ${options.seed}: ${beliefs} beliefs, ${guards} guarded transactions, ${violations.length} violations`,
  );
  t.log(JSON.stringify(faults));
  return result;
}

/** On a busy machine, a short round may end before anybody acquires a lock. Then the next one lasts longer. */
async function assertNoOverlap(
  t: ExecutionContext,
  options: Omit<RoundOptions, "dir"> & { readonly lastsMs: number },
): Promise<void> {
  let beliefs = 0;
  for (let nth = 1; nth <= MOST_ROUNDS && beliefs === 0; nth += 1) {
    const result = await play(t, {
      ...options,
      seed: options.seed + nth,
      lastsMs: nth * options.lastsMs,
    });
    t.deepEqual(result.violations, []);
    t.deepEqual(result.problems, []);
    beliefs = result.beliefs;
  }
  t.true(beliefs > 0);
}

outsideMatrix(TITLE, (t) => assertNoOverlap(t, { lastsMs: 3_000, seed: Date.now() }));

inMatrixSerially(`${TITLE}, with many processes`, (t) =>
  assertNoOverlap(t, { processes: 8, callers: 8, lastsMs: 40_000, seed: Date.now() }),
);

inMatrixSerially("the check finds a release that ends the hold of another caller", async (t) => {
  for (let seed = 1; seed <= MOST_ROUNDS; seed += 1) {
    const { violations } = await play(t, {
      lastsMs: 5_000,
      seed,
      defect: "any-release",
      overruns: true,
    });
    if (violations.length > 0) {
      t.pass();
      return;
    }
  }
  t.fail(`no violation in ${MOST_ROUNDS} rounds`);
});
