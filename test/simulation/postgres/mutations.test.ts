import type { ExecutionContext } from "ava";
import { Lease } from "../../../runtime/queue/lease";
import { StatementError } from "../../../runtime/stores/postgres/client-port";
import { RenewalGroups, type RenewalGroup } from "../../../runtime/stores/postgres/renewal-groups";
import type { AcquireReply, Store } from "../../../runtime/stores/port";
import { inMatrixSerially, outsideMatrixSerially } from "../../support/suites";
import { findsIn, withFault, WRONG_BELIEF } from "../planting";
import type { LeaseRows } from "./lease-rows";
import { simulatePostgres, type Fault } from "./simulate";

// A check that never fails proves nothing. Each test plants one fault in the server, in the store, or in the runtime. The simulation must find
// it, by the invariant for it.

function finds(
  t: ExecutionContext,
  weather: string,
  what: RegExp,
  fault?: Fault,
  seeds?: number,
): Promise<void> {
  return findsIn((seed) => simulatePostgres(seed, fault), t, weather, what, seeds);
}

const inRows = (plant: (rows: LeaseRows) => void): Fault => ({
  server: ({ database }) => plant(database.rows),
});

// ---- faults of the server -------------------------------------------------------------------------------

outsideMatrixSerially("the simulation finds an acquisition that ignores a guarded row", async (t) => {
  const blind = inRows((rows) => (rows.isLocked = () => false));
  await finds(t, "any", /was granted to .* while a transaction guarded/, blind);
});

inMatrixSerially("the simulation finds a guard that locks nothing", async (t) => {
  const loose = inRows((rows) => (rows.lock = () => {}));
  await finds(t, "any", /was granted to .* while a transaction guarded/, loose);
});

inMatrixSerially(
  "the simulation finds an acquisition that changes the holder of an expired row in place",
  async (t) => {
    const inPlace = inRows((rows) => {
      const expired = new Map<string, number>();
      const removeOver = rows.removeOver.bind(rows);
      const insert = rows.insert.bind(rows);
      rows.removeOver = (key) => {
        const over = rows.holds(key).find((hold) => !rows.isAlive(hold) && !rows.isLocked(hold));
        if (over !== undefined) expired.set(key, over.row);
        removeOver(key);
      };
      rows.insert = (hold) => {
        insert(hold);
        const inserted = rows.find(hold.key, hold.holder);
        const row = expired.get(hold.key);
        if (inserted !== undefined && row !== undefined) rows.update(inserted, { row });
        expired.delete(hold.key);
      };
    });
    await finds(t, "any", /a guard of .* passed for .*, and .* acquired it since/, inPlace);
  },
);

inMatrixSerially("the simulation finds a revocation that changes the row in place", async (t) => {
  const inPlace: Fault = {
    server({ database: { rows, functions } }) {
      functions.revoke = ({ key, request_id: requestId }) => {
        const hold = rows.find(key, requestId);
        if (hold !== undefined) rows.update(hold, { isRevoked: true });
        return hold !== undefined;
      };
    },
  };
  await finds(t, "sleepy", /a guard of .* passed for .*, which had ended/, inPlace, 3_000);
});

inMatrixSerially("the simulation finds a release that does not compare the request ID", async (t) => {
  const anyRelease: Fault = {
    server({ database: { rows, functions } }) {
      const endHold = functions.endHold.bind(functions);
      functions.endHold = (key, requestId) => endHold(key, rows.holds(key)[0]?.holder ?? requestId);
    },
  };
  await finds(t, "any", WRONG_BELIEF, anyRelease);
});

outsideMatrixSerially("the simulation finds grants that a crash of the server loses", async (t) => {
  await finds(t, "forgetful", WRONG_BELIEF, { server: (server) => void (server.mustLast = () => false) });
});

inMatrixSerially(
  "the simulation finds an acquisition that leaves the group of the hold that it took over",
  async (t) => {
    const leaving = inRows((rows) => {
      rows.removeOverGroups = () => {};
      // The group is renewed late, such as after a step of the server's clock.
      const { renewGroup } = rows;
      rows.renewGroup = (group) => {
        const { now } = rows.server;
        rows.server.now = () => now() - 60_000;
        const isRenewed = renewGroup.call(rows, group);
        rows.server.now = now;
        return isRenewed;
      };
    });
    await finds(t, "any", WRONG_BELIEF, leaving);
  },
);

inMatrixSerially("the simulation finds a server that notifies nobody", async (t) => {
  await finds(
    t,
    "calm",
    /has been free for .* while .* waits|it took/,
    inRows((rows) => (rows.wake = () => {})),
  );
});

// ---- faults of the store and of the runtime -------------------------------------------------------------

/** Treats a lost reply as a refusal. So nobody knows that the command may have acquired the key. */
async function refusedIfLost(sent: Promise<AcquireReply>): Promise<AcquireReply> {
  try {
    return await sent;
  } catch (error) {
    if ((error as Error).cause instanceof StatementError) throw error; // Nothing of it happened.
    return { acquired: false, holder: undefined, freeInMs: undefined };
  }
}

inMatrixSerially("the simulation finds a store that treats a lost reply as a refusal", async (t) => {
  const hasty = (store: Store): Store => {
    const { batch: _, queue, ...others } = store;
    if (queue === undefined) return store;
    return {
      ...others,
      acquire: (request, timeoutMs) => refusedIfLost(store.acquire(request, timeoutMs)),
      queue: {
        ...queue,
        enqueue: (request, timeoutMs) => refusedIfLost(queue.enqueue(request, timeoutMs)),
      },
    };
  };
  await finds(t, "any", /has been free for .* while .* waits/, { store: hasty });
});

inMatrixSerially("the simulation finds a guarded lock that is handed off inside the process", async (t) => {
  await withFault(
    Lease.prototype,
    "guard",
    () => () => {},
    () => finds(t, "any", /committed over .* in the data of/),
  );
});

inMatrixSerially(
  "the simulation finds a group that is renewed although one of its holds is not",
  async (t) => {
    const known = new Set<RenewalGroup>();
    await withFault(
      RenewalGroups.prototype,
      "created",
      (created) =>
        function (this: RenewalGroups, group, ...others) {
          known.add(group);
          return created.call(this, group, ...others);
        },
      () =>
        withFault(
          RenewalGroups.prototype,
          "plan",
          (plan) =>
            function (this: RenewalGroups, requests, now) {
              const names = new Set(requests.map(({ key, requestId }) => `${requestId} ${key}`));
              for (const { members } of known) {
                const missing = [...members].filter((name) => !names.has(name));
                if (missing.length < members.size) for (const name of missing) members.delete(name);
              }
              return plan.call(this, requests, now);
            },
          () => finds(t, "any", /a group with .* was renewed, and nobody renews that hold/),
        ),
    );
  },
);
