import type { Clock } from "../../../runtime/base/clock";
import { memoryStore } from "../../../runtime/stores/memory";
import { FENCING_STRIDE, type RenewReply } from "../../../runtime/stores/port";
import type { Member } from "../../../runtime/stores/quorum/master";
import { but } from "../../simulation/tampering";
import { flat } from "../../support/flat-store";

/** A master in memory, which has been up for long enough to vote. */
export function memoryMember(clock: Clock, startedAt = -Infinity): Member {
  const fences = new Map<string, number>();
  const announcements = new Map<string, string>();
  const store = flat(memoryStore({ clock }));
  return {
    store: but(store, {
      async renew(requests, timeoutMs) {
        const replies = await store.renew(requests, timeoutMs);
        return replies.map((reply, index): RenewReply => {
          if (reply instanceof Error || !reply.renewed || reply.fencingToken === undefined) return reply;
          const { key } = requests[index] ?? { key: "" };
          const token = Math.max(reply.fencingToken, (fences.get(key) ?? 0) + 1);
          fences.set(key, token + FENCING_STRIDE - 1);
          return { renewed: true, fencingToken: token };
        });
      },
      async announce({ processNumber, about }) {
        announcements.set(processNumber, about);
      },
      announced: async (processNumber) => announcements.get(processNumber),
    }),
    async raiseFence(key, token) {
      fences.set(key, Math.max(fences.get(key) ?? 0, token + FENCING_STRIDE - 1));
    },
    startedAt: async () => startedAt,
    close: () => store.close(),
  };
}
