// Tests of everything that a store must do, for authors of stores. They need only a function that registers a test. A failed test throws an
// AssertionError:
//
//   import test from "node:test";
//   import { storeContract } from "lockweave/store-contract";
//   storeContract(test, () => ({ store, elapse: (ms) => setTimeout(ms + 5) }));

import { holding } from "./contract/holding";
import { next } from "./contract/next";
import { queue } from "./contract/queue";
import { revoking, revokingShares } from "./contract/revoking";
import type { RegisterTest, Subject } from "./contract/subject";
import { notSharing, sharing } from "./contract/sharing";
import { tokens } from "./contract/tokens";

export { untilListening as hearing, type RegisterTest, type Subject } from "./contract/subject";

/**
 * Registers the tests of the contract. Each test uses its own keys, so the tests may run concurrently on one store.
 *
 * @param subject called at the start of each test
 */
export function storeContract(test: RegisterTest, subject: () => Subject): void {
  for (const part of [holding, revoking, queue, next, tokens]) part(test, subject);
  const onlyIf =
    (canShare: boolean): RegisterTest =>
    (title, run) =>
      test(title, async () => {
        if ((subject().canShare ?? true) === canShare) await run();
      });
  sharing(onlyIf(true), subject);
  revokingShares(onlyIf(true), subject);
  notSharing(onlyIf(false), subject);
}
