import test from "ava";
import type { Announced } from "../../runtime/diagnostics/announced";
import type { AnnounceRequest } from "../../runtime/stores/port";
import { LONGEST_ANNOUNCEMENT } from "../../runtime/base/limits";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";

const SECOND = 1_000;

interface Announcement extends Pick<Announced, "holds" | "waits" | "unlisted"> {
  readonly at: number;
  readonly bytes: number;
}

/** A fleet with one process that announces itself, and its announcements. */
function announced(): { fleet: Fleet; process: ReturnType<Fleet["process"]>; announcements: Announcement[] } {
  const fleet = new Fleet();
  const announcements: Announcement[] = [];
  const began = fleet.clock.now();
  Object.assign(fleet.store.admin, {
    announce: async ({ about }: AnnounceRequest) => {
      const { holds = [], waits, unlisted } = JSON.parse(about) as Announced;
      const lists = { holds, ...(waits && { waits }), ...(unlisted && { unlisted }) };
      announcements.push({ at: fleet.clock.now() - began, bytes: Buffer.byteLength(about), ...lists });
    },
  });
  return { fleet, process: fleet.process({ announce: true }), announcements };
}

test("announces a lock one second after it is acquired, regardless of earlier announcements", async (t) => {
  const { fleet, process, announcements } = announced();
  await fleet.clock.advance(7 * SECOND);
  const isOver = deferred();
  const held = process.call("LOCK_pay", {}, () => isOver.promise);
  await fleet.clock.advance(SECOND);
  t.like(announcements.at(-1), { at: 8 * SECOND, holds: [{ key: "LOCK_pay", forMs: SECOND }] });
  isOver.resolve();
  await held;
  await fleet.clock.advance(5 * SECOND);
  t.like(announcements.at(-1), { at: 13 * SECOND, holds: [] });
  process.locker.all.stopAnnouncing();
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
  process.locker.all.stopAnnouncing();
});

test("announces for each key how many calls wait, and how long the first one has waited", async (t) => {
  const { fleet, process, announcements } = announced();
  await fleet.acquireElsewhere("LOCK_pay", 600 * SECOND);
  await fleet.acquireElsewhere("LOCK_ship", 600 * SECOND);
  const waiting = [process.call("LOCK_pay", { wait: "30s" }, () => t.fail(), { site: "OrderService.pay" })];
  await fleet.clock.advance(3 * SECOND);
  for (let call = 0; call < 18; call += 1)
    waiting.push(process.call("LOCK_pay", { wait: "30s" }, () => t.fail()));
  waiting.push(process.call("LOCK_ship", { wait: "30s" }, () => t.fail()));
  await fleet.clock.advance(3 * SECOND);
  t.deepEqual(announcements.at(-1)?.waits, [
    { key: "LOCK_pay", site: "OrderService.pay", forMs: 5 * SECOND, calls: 19 },
    { key: "LOCK_ship", forMs: 2 * SECOND, calls: 1 },
  ]);
  t.is(announcements.at(-1)?.unlisted, undefined);
  const ended = Promise.allSettled(waiting);
  await fleet.clock.advance(60 * SECOND);
  await ended;
  t.is(announcements.at(-1)?.waits, undefined);
  process.locker.all.stopAnnouncing();
});

test("an announcement lists at most 100 keys of each kind, counts the others, and stays short", async (t) => {
  const { fleet, process, announcements } = announced();
  const name = (index: number): string => `LOCK_${index}_${"\u{1F512}".repeat(300)}`.slice(0, 240);
  const waiting: Promise<unknown>[] = [];
  for (let index = 0; index < 150; index += 1) {
    await fleet.acquireElsewhere(name(index), 600 * SECOND);
    for (let call = 0; call < 2; call += 1)
      waiting.push(process.call(name(index), { wait: "30s" }, () => t.fail(), { site: "x".repeat(9_000) }));
  }
  const tooLong = `LOCK_${"\0".repeat(200)}`;
  await fleet.acquireElsewhere(tooLong, 600 * SECOND);
  waiting.push(process.call(tooLong, { wait: "30s" }, () => t.fail()));
  await fleet.clock.advance(6 * SECOND);
  t.is(announcements.at(-1)?.waits?.length, 100);
  t.deepEqual(announcements.at(-1)?.unlisted, { holds: 0, calls: 101 });
  t.true((announcements.at(-1)?.bytes ?? Infinity) < LONGEST_ANNOUNCEMENT / 2);
  const ended = Promise.allSettled(waiting);
  await fleet.clock.advance(60 * SECOND);
  await ended;
  process.locker.all.stopAnnouncing();
});
