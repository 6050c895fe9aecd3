import test from "ava";
import { Alarms, type Sleeper } from "../../runtime/queue/alarms";
import { VirtualClock } from "../support/virtual-clock";

class CountingSleeper implements Sleeper {
  rang = 0;
  onAlarm(): void {
    this.rang += 1;
  }
}

test("sleepers with the same wake-up millisecond share one timer and wake together", async (t) => {
  const clock = new VirtualClock();
  const alarms = new Alarms(clock);
  const sleepers = Array.from({ length: 1_000 }, () => new CountingSleeper());
  for (const [index, sleeper] of sleepers.entries())
    alarms.set(sleeper, clock.now() + 100 - (index % 10) / 10);
  t.is(clock.pendingTimers, 1);
  await clock.advance(99);
  t.true(
    sleepers.every(({ rang }) => rang === 0),
    "no sleeper wakes early",
  );
  await clock.advance(1);
  t.true(sleepers.every(({ rang }) => rang === 1));
  t.is(clock.pendingTimers, 0);
});

test("a canceled sleeper does not wake, and canceling the last one removes the timer", async (t) => {
  const clock = new VirtualClock();
  const alarms = new Alarms(clock);
  const [one, other] = [new CountingSleeper(), new CountingSleeper()];
  const at = alarms.set(one, clock.now() + 100);
  alarms.set(other, clock.now() + 100);
  alarms.cancel(one, at);
  t.is(clock.pendingTimers, 1);
  alarms.cancel(one, at);
  alarms.cancel(other, at);
  t.is(clock.pendingTimers, 0);
  await clock.advance(100);
  t.deepEqual([one.rang, other.rang], [0, 0]);
  alarms.cancel(one, at);
});

test("a sleeper that is set again for the same millisecond wakes", async (t) => {
  const clock = new VirtualClock();
  const alarms = new Alarms(clock);
  const sleeper = new CountingSleeper();
  alarms.cancel(sleeper, alarms.set(sleeper, clock.now() + 50));
  alarms.set(sleeper, clock.now() + 50);
  await clock.advance(50);
  t.is(sleeper.rang, 1);
  t.is(clock.pendingTimers, 0);
});
