import test from "ava";
import type { AnnounceRequest } from "../../runtime/stores/port";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";

const SECOND = 1_000;

interface Announcement {
  readonly at: number;
  readonly holds: readonly { readonly key: string; readonly forMs: number }[];
}

/** A fleet with one process that announces itself, and its announcements. */
function announced(): { fleet: Fleet; process: ReturnType<Fleet["process"]>; announcements: Announcement[] } {
  const fleet = new Fleet();
  const announcements: Announcement[] = [];
  const began = fleet.clock.now();
  Object.assign(fleet.store.admin, {
    announce: async ({ about }: AnnounceRequest) => {
      const { holds = [] } = JSON.parse(about) as Partial<Announcement>;
      announcements.push({ at: fleet.clock.now() - began, holds });
    },
  });
  return { fleet, process: fleet.process({ announce: true }), announcements };
}

test("announces a lock one second after it is acquired, at any time", async (t) => {
  const { fleet, process, announcements } = announced();
  await fleet.clock.advance(7 * SECOND);
  const isOver = deferred();
  const held = process.call("LOCK_pay", {}, () => isOver.promise);
  await fleet.clock.advance(SECOND);
  t.deepEqual(announcements.at(-1), { at: 8 * SECOND, holds: [{ key: "LOCK_pay", forMs: SECOND }] });
  isOver.resolve();
  await held;
  await fleet.clock.advance(5 * SECOND);
  t.deepEqual(announcements.at(-1), { at: 13 * SECOND, holds: [] });
  process.locker.all.fallSilent();
  await fleet.leftNothing(t, "LOCK_pay", process);
});

test("announces at most every 5 seconds, and every 20 seconds if no lock lasts", async (t) => {
  const { fleet, process, announcements } = announced();
  for (let call = 0; call < 20; call += 1) {
    await process.call(`LOCK_${call}`, {}, () => fleet.clock.advance(1.5 * SECOND));
  }
  const busy = announcements.map(({ at }) => at);
  busy.forEach((at, index) => t.true(index === 0 || at - (busy[index - 1] ?? at) >= 5 * SECOND, busy.join()));
  t.true(busy.length >= 5, busy.join());
  await fleet.clock.advance(10 * SECOND);
  const before = announcements.length;
  await fleet.clock.advance(40 * SECOND);
  t.is(announcements.length - before, 2);
  process.locker.all.fallSilent();
});
