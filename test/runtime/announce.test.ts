import test from "ava";
import type { AnnounceRequest } from "../../runtime/stores/port";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";

const SECOND = 1_000;

interface Said {
  readonly at: number;
  readonly holds: readonly { readonly key: string; readonly forMs: number }[];
}

/** A fleet of one process that says who it is, and what it said. */
function announced(): { fleet: Fleet; process: ReturnType<Fleet["process"]>; said: Said[] } {
  const fleet = new Fleet();
  const said: Said[] = [];
  const began = fleet.clock.now();
  Object.assign(fleet.store, {
    announce: async ({ about }: AnnounceRequest) => {
      const { holds = [] } = JSON.parse(about) as Partial<Said>;
      said.push({ at: fleet.clock.now() - began, holds });
    },
  });
  return { fleet, process: fleet.process({ announce: true }), said };
}

test("a lock that begins to last is told a second after its beginning, whenever that was", async (t) => {
  const { fleet, process, said } = announced();
  await fleet.clock.advance(7 * SECOND);
  const isOver = deferred();
  const held = process.call("LOCK_pay", {}, () => isOver.promise);
  await fleet.clock.advance(SECOND);
  t.deepEqual(said.at(-1), { at: 8 * SECOND, holds: [{ key: "LOCK_pay", forMs: SECOND }] });
  isOver.resolve();
  await held;
  await fleet.clock.advance(5 * SECOND);
  t.deepEqual(said.at(-1), { at: 13 * SECOND, holds: [] });
  process.locker.all.fallSilent();
  await fleet.leftNothing(t, "LOCK_pay", process);
});

test("a process says no more than a word each five seconds, and without locks that last each twenty", async (t) => {
  const { fleet, process, said } = announced();
  for (let call = 0; call < 20; call += 1) {
    await process.call(`LOCK_${call}`, {}, () => fleet.clock.advance(1.5 * SECOND));
  }
  const busy = said.map(({ at }) => at);
  busy.forEach((at, index) => t.true(index === 0 || at - (busy[index - 1] ?? at) >= 5 * SECOND, busy.join()));
  t.true(busy.length >= 5, busy.join());
  await fleet.clock.advance(10 * SECOND);
  const before = said.length;
  await fleet.clock.advance(40 * SECOND);
  t.is(said.length - before, 2);
  process.locker.all.fallSilent();
});
