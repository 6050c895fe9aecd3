import test from "ava";
import type { ClusterNode } from "../../runtime/stores/redis/client-port";
import { SilentMasters } from "../../runtime/stores/redis/cluster/silent-masters";
import { VirtualClock } from "../support/virtual-clock";

const SECOND = 1_000;
const CALLERS = 1_000;

class Masters {
  readonly clock = new VirtualClock();
  readonly hung: ClusterNode = { address: "hung", database: 0 };
  readonly healthy: ClusterNode = { address: "healthy", database: 0 };
  readonly asked: ClusterNode[] = [];
  readonly silent = new SilentMasters(
    (node) => void this.asked.push(node),
    () => Infinity,
    this.clock,
  );
}

test("a thousand writes without a reply cause one check of the master", async (t) => {
  const { clock, silent, hung, asked } = new Masters();
  for (let caller = 0; caller < CALLERS; caller += 1) silent.sent(hung);
  await clock.advance(SECOND - 1);
  t.is(asked.length, 0);
  await clock.advance(60 * SECOND);
  t.deepEqual(asked, [hung]);
});

test("while more writes are sent, the pauses between checks grow to three seconds", async (t) => {
  const { clock, silent, hung, asked } = new Masters();
  for (let ms = 0; ms < 60 * SECOND; ms += 10) {
    silent.sent(hung);
    await clock.advance(10);
  }
  t.true(asked.length >= 20, `${asked.length} questions`);
  t.true(asked.length <= 60, `${asked.length} questions`);
});

test("a master that replies is not checked, however many writes wait behind the reply", async (t) => {
  const { clock, silent, hung, healthy, asked } = new Masters();
  silent.sent(hung);
  for (let ms = 0; ms < 10 * SECOND; ms += 100) {
    silent.sent(healthy);
    silent.sent(healthy);
    await clock.advance(100);
    silent.settled(healthy);
  }
  t.deepEqual(asked, [hung]);
});

test("a reply cancels a check that is due", async (t) => {
  const { clock, silent, hung, asked } = new Masters();
  silent.sent(hung);
  await clock.advance(SECOND);
  silent.settled(hung);
  await clock.advance(60 * SECOND);
  t.deepEqual(asked, []);
  t.is(clock.pendingTimers, 0);
});

test("each silent master is checked", async (t) => {
  const { clock, silent, hung, healthy, asked } = new Masters();
  silent.sent(hung);
  silent.sent(healthy);
  await clock.advance(2 * SECOND);
  t.deepEqual(asked, [hung, healthy]);
});

test("a closed store checks nothing", async (t) => {
  const { clock, silent, hung, asked } = new Masters();
  silent.sent(hung);
  await clock.advance(SECOND);
  silent.close();
  silent.sent(hung);
  await clock.advance(60 * SECOND);
  t.deepEqual(asked, []);
  t.is(clock.pendingTimers, 0);
});
