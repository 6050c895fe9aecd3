import test from "ava";
import { RenewalGroups, type RenewalPlan } from "../../../runtime/stores/postgres/renewal-groups";
import type { RenewRequest } from "../../../runtime/stores/port";
import { newId, newKey, renewal } from "../../store-contract/subject";

// Which holds share a row on the server, as far as the process knows. A group may be renewed only as a whole.

const FEWEST = 3;
const LOCK_MS = 1_000;

function holdsOf(count: number): RenewRequest[] {
  return Array.from({ length: count }, () => renewal(newKey(), newId(), LOCK_MS));
}

/** Returns groups with one group of these holds, which expires when the time is 1,000. */
function grouped(holds: readonly RenewRequest[]): RenewalGroups {
  const groups = new RenewalGroups(FEWEST);
  const [joining] = groups.plan(holds, 0).joining;
  if (joining === undefined) throw new Error("there is no group");
  groups.created(joining.group, holds, LOCK_MS);
  return groups;
}

/** Returns the numbers of requests: in whole groups, in new groups, and others. */
function counts({ whole, joining, others }: RenewalPlan): readonly (readonly number[])[] {
  const sizes = (some: RenewalPlan["whole"]): readonly number[] =>
    some.map(({ requests }) => requests.length);
  return [sizes(whole), sizes(joining), [others.length]];
}

test("a group is renewed as a whole, and other holds are not affected", (t) => {
  const holds = holdsOf(4);
  const groups = grouped(holds);
  t.deepEqual(counts(groups.plan(holdsOf(2), 1)), [[], [], [2]]);
  t.deepEqual(counts(groups.plan([...holds, ...holdsOf(3)], 1)), [[4], [3], [0]]);
});

test("a group is given up if a hold is missing, has another lock time, or needs a token or replicas", (t) => {
  const changes: readonly ((hold: RenewRequest) => readonly RenewRequest[])[] = [
    () => [],
    (hold) => [{ ...hold, lockTimeMs: LOCK_MS - 1 }],
    (hold) => [{ ...hold, fencing: true }],
    (hold) => [{ ...hold, replicas: 1 }],
  ];
  for (const change of changes) {
    const holds = holdsOf(4);
    const groups = grouped(holds);
    const changed = holds.flatMap((hold, index) => (index === 0 ? change(hold) : [hold]));
    t.deepEqual(counts(groups.plan(changed, 1)), [[], [3], [changed.length - 3]]);
    t.deepEqual(groups.plan(holds, 1).whole, []);
  }
});

test("a duplicate request does not replace the request of a missing hold", (t) => {
  const holds = holdsOf(3);
  const [first, second] = holds;
  if (first === undefined || second === undefined) throw new Error("there are no holds");
  t.deepEqual(grouped(holds).plan([first, second, second], 1).whole, []);
});

test("a hold whose end was confirmed leaves its group, and the next renewal names it", (t) => {
  const holds = holdsOf(4);
  const [first, ...others] = holds;
  if (first === undefined) throw new Error("there are no holds");
  const groups = grouped(holds);
  groups.ended(first);
  const { whole } = groups.plan(others, 1);
  t.is(whole.length, 1);
  t.deepEqual(whole[0]?.group.ended, [{ key: first.key, requestId: first.requestId }]);
});

test("a group is given up while a command for it is in flight, and when it has expired", (t) => {
  const holds = holdsOf(3);
  const busy = grouped(holds);
  const [together] = busy.plan(holds, 1).whole;
  if (together === undefined) throw new Error("there is no group");
  together.group.isBusy = true;
  t.deepEqual(busy.plan(holds, 1).whole, []);
  t.true(holds.every((hold) => !busy.has(together.group, hold)));
  t.deepEqual(grouped(holds).plan(holds, LOCK_MS).whole, []);
});

test("a later group has a larger ID", (t) => {
  const groups = new RenewalGroups(FEWEST);
  const ids = Array.from({ length: 20 }, () => groups.plan(holdsOf(3), 0).joining[0]?.group.id ?? "");
  t.deepEqual(ids.toSorted(), ids);
  t.is(new Set(ids).size, 20);
});
