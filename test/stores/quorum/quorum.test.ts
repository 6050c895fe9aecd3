import test from "ava";
import { storeContract } from "../../../runtime/stores/contract";
import { QuorumStore } from "../../../runtime/stores/quorum/quorum";
import { VirtualClock } from "../../support/virtual-clock";
import { registering } from "../registering";
import { memoryMember } from "./memory-member";

const LONGEST_MS = 86_400_000;

for (const count of [3, 4, 5]) {
  storeContract(registering(test, `of ${count}: `), () => {
    const clock = new VirtualClock();
    const members = Array.from({ length: count }, () => memoryMember(clock));
    return {
      store: new QuorumStore(members, clock, LONGEST_MS),
      elapse: (ms) => clock.advance(ms),
      async put(key, requestId, lockTimeMs) {
        for (const { store } of members) await store.take({ key, requestId, lockTimeMs, fencing: false }, 1);
      },
    };
  });
}
