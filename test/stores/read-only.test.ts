import test, { type ExecutionContext } from "ava";
import { Backoff } from "../../runtime/stores/connection/backoff";
import { ReadOnlyServer } from "../../runtime/stores/redis/read-only";
import { VirtualClock } from "../support/virtual-clock";

const SECOND = 1_000;
const READONLY = new Error("READONLY You can't write against a read only replica.");
READONLY.name = "ReplyError";

function server(t: ExecutionContext): {
  server: ReadOnlyServer;
  clock: VirtualClock;
  reconnects: () => number;
} {
  const clock = new VirtualClock();
  let reconnects = 0;
  const made = new ReadOnlyServer(
    new Backoff(clock, () => Infinity),
    () => {
      reconnects += 1;
    },
    clock,
  );
  t.teardown(() => made.stop());
  return { server: made, clock, reconnects: () => reconnects };
}

test("READONLY replies of one connection count once, no matter how many arrive", async (t) => {
  const { server: readOnly, clock, reconnects } = server(t);
  readOnly.connected();
  for (let reply = 0; reply < 10; reply += 1) {
    t.is(readOnly.check(READONLY), undefined);
    await clock.advance(4 * SECOND);
  }
  t.true(reconnects() > 3, "each READONLY reply requests a new connection");
});

test("READONLY from three new connections in a row is permanent, and a lasting connection resets the count", async (t) => {
  const { server: readOnly, clock } = server(t);
  readOnly.connected();
  for (let connection = 0; connection < 3; connection += 1) {
    t.is(readOnly.check(READONLY), undefined);
    await clock.advance(SECOND);
    readOnly.connected();
  }
  t.regex(readOnly.check(READONLY)?.message ?? "", /new connections reach one as well/);
  await clock.advance(SECOND);
  readOnly.connected();
  t.is(readOnly.check("OK"), undefined);
  await clock.advance(4 * SECOND);
  t.is(readOnly.check(READONLY), undefined);
});

test("READONLY of a server that has worked is not permanent for 10 seconds", async (t) => {
  const { server: readOnly, clock } = server(t);
  readOnly.connected();
  t.is(readOnly.check("OK"), undefined);
  for (let second = 0; second < 10; second += 1) {
    t.is(readOnly.check(READONLY), undefined);
    await clock.advance(SECOND);
    readOnly.connected();
  }
  t.regex(readOnly.check(READONLY)?.message ?? "", /new connections reach one as well/);
});

test("READONLY is not permanent during a short failover, however many new connections there are", async (t) => {
  const { server: readOnly, clock } = server(t);
  for (let connection = 0; connection < 9; connection += 1) {
    readOnly.connected();
    t.is(readOnly.check(READONLY), undefined);
    await clock.advance(50);
  }
  await clock.advance(50);
  readOnly.connected();
  t.regex(readOnly.check(READONLY)?.message ?? "", /new connections reach one as well/);
});
