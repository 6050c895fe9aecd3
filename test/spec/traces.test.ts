import type { ExecutionContext } from "ava";
import { Acquisition } from "../../runtime/queue/acquisition";
import { Lease } from "../../runtime/queue/lease";
import type { AcquireReply } from "../../runtime/stores/port";
import { written } from "../simulation/explorer/choices";
import { explore } from "../simulation/explorer/explore";
import { planOf } from "../simulation/explorer/plans";
import type { Story } from "../simulation/explorer/story";
import { withFault } from "../simulation/planting";
import { but, type Tamper } from "../simulation/tampering";
import { inMatrixSerially } from "../support/suites";
import { tracesOfSeed } from "./recorded-world";
import { describeTrace, verifyTraces } from "./traces";
import type { ModelTrace } from "./model-trace";

// The model in `lock.pml` and the code must agree. The explorer records runs of the real code in steps of the model, and the model must be
// able to take each of them.

/** The plans with one exclusive key, two processes, and no suspension. */
const PLANS = [
  "two processes",
  "different locks",
  "renewals",
  "try-locks",
  "a hand-off",
  "releases in the background",
  "a revoked lock",
];
/** Each plan has fewer schedules with one deviation. */
const SCHEDULES = 800;
/** The number of keys in simulated worlds. */
const WORLDS = 1_000;

interface Recorded {
  readonly name: string;
  readonly trace: ModelTrace;
}

async function record(plan: string, schedules: number, tamper?: Tamper): Promise<Recorded[]> {
  const recorded: Recorded[] = [];
  const onSeen = (story: Story, choices: Parameters<typeof written>[0]): void => {
    for (const trace of story.modelTraces ?? [])
      recorded.push({ name: `--plan "${plan}" --replay ${written(choices)}`, trace });
  };
  const reach = { deviations: 2, mostSchedules: schedules, mostFailures: Infinity, isModeled: true, onSeen };
  await explore(planOf(plan), tamper === undefined ? reach : { ...reach, tamper });
  return recorded;
}

inMatrixSerially("the model takes each step of schedules of the real code", async (t) => {
  t.timeout(600_000);
  const recorded: Recorded[] = [];
  for (const plan of PLANS) recorded.push(...(await record(plan, SCHEDULES)));
  t.true(recorded.length >= 1_000);
  agree(t, recorded);
});

/** Passes if the model accepts all traces. */
function agree(t: ExecutionContext, recorded: readonly Recorded[]): void {
  const { rejectedAt, unused } = verifyTraces(recorded.map(({ trace }) => trace.steps));
  const rejected = recorded.flatMap(({ name, trace }, nth) => {
    const at = rejectedAt[nth];
    return at === undefined ? [] : [`${name}\n${describeTrace(trace.steps, at)}`];
  });
  t.deepEqual(rejected, []);
  t.log([`${recorded.length} traces. No trace needed these statements of the model:`, ...unused].join("\n"));
}

inMatrixSerially("the model takes each step of simulated worlds", async (t) => {
  t.timeout(600_000);
  const recorded: Recorded[] = [];
  for (let seed = 0; recorded.length < WORLDS; seed += 1)
    for (const trace of await tracesOfSeed(seed)) recorded.push({ name: `seed ${seed}`, trace });
  agree(t, recorded);
});

/** Passes if the model rejects a schedule of the code, in which a fault is planted. */
async function isRejected(t: ExecutionContext, plan: string, tamper?: Tamper): Promise<void> {
  t.timeout(300_000);
  const recorded = await record(plan, 0, tamper);
  const { rejectedAt } = verifyTraces(recorded.map(({ trace }) => trace.steps));
  const nth = rejectedAt.findIndex((at) => at !== undefined);
  if (nth < 0) return t.fail(`The model accepts all of ${recorded.length} traces`);
  t.log(recorded[nth]?.name, describeTrace(recorded[nth]?.trace.steps ?? [], rejectedAt[nth] ?? 0));
  t.pass();
}

function proving(shiftMs: (lockTimeMs: number) => number): (prove: Lease["prove"]) => Lease["prove"] {
  return (prove) =>
    function (this: Lease, sentAt, lockTimeMs, trustedSince) {
      prove.call(this, sentAt + shiftMs(lockTimeMs), lockTimeMs, trustedSince);
    };
}

inMatrixSerially("the model rejects a belief that counts from the reply", async (t) => {
  const later = proving(() => 2); // The time of a round trip.
  await withFault(Lease.prototype, "prove", later, () => isRejected(t, "two processes"));
});

inMatrixSerially("the model rejects a belief without clock drift", async (t) => {
  const exact = proving((lockTimeMs) => lockTimeMs * 0.01 + 2);
  await withFault(Lease.prototype, "prove", exact, () => isRejected(t, "two processes"));
});

inMatrixSerially("the model rejects a release that is sent before its belief ends", async (t) => {
  const hasty = (hear: Acquisition["onReply"]): Acquisition["onReply"] =>
    function (this: Acquisition, command, reply) {
      const { key, requestId } = command.request;
      hear.call(this, command, reply);
      if (reply.acquired) void this.store.release({ key, requestId }, 1_000);
    };
  await withFault(Acquisition.prototype, "onReply", hasty, () => isRejected(t, "two processes"));
});

inMatrixSerially("the model rejects a hold that is found and trusted without a renewal", async (t) => {
  // Counts from the command that found the hold, as if that command had acquired it.
  const trusting = (hear: Acquisition["onReply"]): Acquisition["onReply"] =>
    function (this: Acquisition, command, reply) {
      const isOurs =
        !reply.acquired && reply.holder?.startsWith(command.request.requestId.slice(0, 12)) === true;
      hear.call(this, command, isOurs ? { acquired: true } : reply);
    };
  await withFault(Acquisition.prototype, "onReply", trusting, () => isRejected(t, "two processes"));
});

inMatrixSerially("the model rejects a request ID that two commands share", async (t) => {
  const first = new Map<string, string>();
  const sharing = (requestFor: Acquisition["requestFor"]): Acquisition["requestFor"] =>
    function (this: Acquisition, waiter) {
      const request = requestFor.call(this, waiter);
      const requestId = first.get(request.ticket) ?? request.requestId;
      first.set(request.ticket, requestId);
      return { ...request, requestId };
    };
  await withFault(Acquisition.prototype, "requestFor", sharing, () => isRejected(t, "two processes"));
});

inMatrixSerially("the model rejects a store that grants a key twice", async (t) => {
  const generous: Tamper = (store) =>
    but(store, {
      async acquire(request, timeoutMs): Promise<AcquireReply> {
        await store.acquire(request, timeoutMs);
        return { acquired: true };
      },
    });
  await isRejected(t, "two processes", generous);
});

inMatrixSerially("the model rejects a store whose keys expire too early", async (t) => {
  const hasty: Tamper = (store) =>
    but(store, {
      acquire: (request, timeoutMs) =>
        store.acquire({ ...request, lockTimeMs: request.lockTimeMs / 2 }, timeoutMs),
    });
  await isRejected(t, "two processes", hasty);
});

inMatrixSerially("the model rejects a store whose renewals shorten holds", async (t) => {
  const shortening: Tamper = (store) =>
    but(store, {
      renew: (requests, timeoutMs) =>
        store.renew(
          requests.map((request) => ({ ...request, lockTimeMs: 1 })),
          timeoutMs,
        ),
    });
  await isRejected(t, "renewals", shortening);
});
