// What every store promises, as tests: for those who write one. They need no test runner but a function that registers a
// test, and throw an AssertionError where a promise is broken:
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

export { hearing, type RegisterTest, type Subject } from "./contract/subject";

/**
 * Registers the tests of the contract. Each takes keys of its own, so that they may run side by side over one store.
 *
 * @param subject asked for at the beginning of each test
 */
export function storeContract(test: RegisterTest, subject: () => Subject): void {
  for (const part of [holding, revoking, queue, next, tokens]) part(test, subject);
  const where =
    (canShare: boolean): RegisterTest =>
    (title, run) =>
      test(title, async () => {
        if ((subject().canShare ?? true) === canShare) await run();
      });
  sharing(where(true), subject);
  revokingShares(where(true), subject);
  notSharing(where(false), subject);
}
