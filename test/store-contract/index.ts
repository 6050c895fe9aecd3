// Tests of everything that a store must do, for authors of stores. They need only a function that registers a test. A failed test throws an
// AssertionError:
//
//   import test from "node:test";
//   import { storeContract } from "lockweave/store-contract";
//   storeContract(test, () => ({ store, elapse: (ms) => setTimeout(ms + 5) }));

import type { Store } from "../../runtime/stores/port";
import { administration, administrationOfShares } from "./admin";
import { batches, sharingInBatches } from "./batch";
import { holding } from "./holding";
import { next } from "./next";
import { queue } from "./queue";
import { notSharing, sharing } from "./sharing";
import { GROUPS, type RegisterTest, type Subject } from "./subject";
import { tokens } from "./tokens";

export { untilListening, type RegisterTest, type Subject } from "./subject";

/**
 * Registers the tests of the contract. Each test uses its own keys, so the tests may run concurrently on one store. The tests of a group,
 * such as `queue`, do nothing if the store does not have the group.
 *
 * @param given called at the start of each test
 * @param report called once, when the first test starts, with a line that names the groups under test. By default `console.log`
 */
export function storeContract(
  test: RegisterTest,
  given: () => Subject,
  report: (line: string) => void = console.log,
): void {
  let hasReported = false;
  const subject = (): Subject => {
    const tested = given();
    if (!hasReported) report(groupsUnderTest(tested));
    hasReported = true;
    return tested;
  };
  for (const part of [holding, tokens, queue, next, administration, batches]) part(test, subject);
  const onlyIf =
    (canShare: boolean): RegisterTest =>
    (title, run) =>
      test(title, async () => {
        if (isSharing(subject()) === canShare) await run();
      });
  for (const part of [sharing, administrationOfShares, sharingInBatches]) part(onlyIf(true), subject);
  notSharing(onlyIf(false), subject);
}

function isSharing({ canShare = true }: Subject): boolean {
  return canShare;
}

/** Returns the line that names the groups under test. */
function groupsUnderTest(tested: Subject): string {
  const { store }: { readonly store: Store } = tested;
  const [has, lacks] = [true, false].map((wanted) =>
    GROUPS.filter((group) => (store[group] !== undefined) === wanted),
  );
  const shared = isSharing(tested) ? "shared locks" : "no shared locks";
  const missing = lacks === undefined || lacks.length === 0 ? "" : `. The store lacks: ${lacks.join(", ")}`;
  return `lockweave/store-contract tests: ${["acquire, renew, release, peek", ...(has ?? []), shared].join(", ")}${missing}`;
}
