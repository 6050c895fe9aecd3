import test from "ava";
import { Backoff, backoffMs } from "../../runtime/stores/connection/backoff";
import { VirtualClock } from "../support/virtual-clock";

const SECOND = 1_000;
const IDLE = Infinity;

test("delays double up to 3 seconds, with random jitter", (t) => {
  const longest = Array.from({ length: 12 }, (_, failures) => backoffMs(failures, IDLE, 1));
  t.deepEqual(longest.slice(0, 4), [50, 100, 200, 400]);
  t.is(longest.at(-1), 3 * SECOND);
  for (const failures of [0, 3, 30]) {
    t.is(backoffMs(failures, IDLE, 0), backoffMs(failures, IDLE, 1) / 2);
  }
});

test("a delay is at most a fifth of the shortest time left, and 500 ms", (t) => {
  for (const failures of [5, 30]) {
    for (const leftMs of [60 * SECOND, 2.5 * SECOND]) t.is(backoffMs(failures, leftMs, 1), 500);
    t.is(backoffMs(failures, 2 * SECOND, 1), 400);
  }
});

test("the bound of a delay is never below 50 ms, and after 8 failures never below 250 ms", (t) => {
  t.is(backoffMs(7, 300, 1), 60);
  for (const leftMs of [250, 20, 0, -1]) t.is(backoffMs(7, leftMs, 1), 50);
  for (const leftMs of [300, 0]) t.is(backoffMs(8, leftMs, 1), 250);
});

test("thirty processes without Redis make at most 20 attempts a second", async (t) => {
  const clock = new VirtualClock();
  let attempts = 0;
  for (let process = 0; process < 30; process += 1) {
    const backoff = new Backoff(clock, () => IDLE);
    const attempt = (): void => {
      attempts += 1;
      backoff.schedule(attempt);
    };
    backoff.schedule(attempt);
  }
  await clock.advance(10 * SECOND);
  attempts = 0;
  await clock.advance(50 * SECOND);
  t.true(attempts > 0 && attempts <= (30 * 50) / 1.5, String(attempts));
});

test("a process reconnects more often as its lease runs out", async (t) => {
  const clock = new VirtualClock();
  const endsAt = clock.now() + 20 * SECOND;
  const backoff = new Backoff(clock, () => endsAt - clock.now());
  const leftMs: number[] = [];
  const pausesMs: number[] = [];
  let before = clock.now();
  const attempt = (): void => {
    pausesMs.push(clock.now() - before);
    leftMs.push(endsAt - before);
    before = clock.now();
    backoff.schedule(attempt);
  };
  backoff.schedule(attempt);
  await clock.advance(20 * SECOND);
  pausesMs.forEach((ms, index) => t.true(ms <= Math.max((leftMs[index] ?? 0) / 5, 250), `${ms}`));
  t.true(Math.max(...pausesMs) > 250);
});

test("only a connection that lasted resets the delay", async (t) => {
  const clock = new VirtualClock();
  const backoff = new Backoff(clock, () => IDLE);
  const delay = async (): Promise<number> => {
    const startedAt = clock.now();
    let ranAt: number | undefined;
    backoff.schedule(() => (ranAt = clock.now()));
    backoff.schedule(() => t.fail("only one attempt is scheduled at a time"));
    await clock.advanceWhile(() => ranAt === undefined, 10 * SECOND);
    return (ranAt ?? NaN) - startedAt;
  };
  for (let failure = 0; failure < 8; failure += 1) {
    await delay();
    backoff.connected();
  }
  t.true((await delay()) >= 1.5 * SECOND);
  backoff.connected();
  await clock.advance(3 * SECOND + 1);
  t.true((await delay()) <= 50);
  backoff.schedule(() => t.fail("stop() cancels the attempt"));
  backoff.stop();
  await clock.advance(10 * SECOND);
});

test("a caller that arrives during a long delay shortens it", async (t) => {
  const clock = new VirtualClock();
  const backoff = new Backoff(clock, () => IDLE);
  let attempts = 0;
  const fail = (): void => {
    attempts += 1;
    backoff.schedule(fail);
  };
  backoff.schedule(fail);
  await clock.advance(20 * SECOND);
  for (const [leftMs, longestMs] of [
    [60 * SECOND, 500],
    [2 * SECOND, 400],
    [100, 250],
    [undefined, 500],
  ] as const) {
    attempts = 0;
    backoff.hurry(leftMs);
    backoff.hurry(60 * SECOND); // A caller with more time does not prolong the delay.
    await clock.advance(longestMs);
    t.is(attempts, 1, `${leftMs}`);
  }
  backoff.stop();
  backoff.hurry(100); // There is no delay to shorten.
  t.is(clock.pendingTimers, 0);
});
