import test from "ava";
import { Silence } from "../../runtime/stores/redis/silence";
import { VirtualClock } from "../support/virtual-clock";

const SECOND = 1_000;
const TIMEOUT_MS = 250;

class Connection {
  readonly clock = new VirtualClock();
  bytes: number | undefined = 0;
  readonly found: (() => boolean)[] = [];
  readonly silence = new Silence(
    this.clock,
    () => this.bytes,
    (isStillSilent) => void this.found.push(isStillSilent),
  );

  send(): void {
    this.silence.sent(TIMEOUT_MS);
  }
}

test("a connection is silent if two commands are overdue and no byte has arrived for three seconds", async (t) => {
  const connection = new Connection();
  connection.send();
  await connection.clock.advance(10 * SECOND);
  t.is(connection.found.length, 0, "one overdue command is not enough");
  connection.send();
  await connection.clock.advance(TIMEOUT_MS);
  t.is(connection.found.length, 1);
  t.true(connection.found[0]?.());
});

test("a single byte shows that the connection is alive, even without a whole reply", async (t) => {
  const connection = new Connection();
  connection.send();
  connection.send();
  await connection.clock.advance(2 * SECOND);
  connection.bytes = 1;
  await connection.clock.advance(2 * SECOND);
  t.is(connection.found.length, 0);
});

for (const [client, after] of [
  ["a client that counts the bytes it reads", 10],
  ["a client that does not count bytes", undefined],
] as const) {
  test(`a silent connection that replies counts as alive although new commands follow: ${client}`, async (t) => {
    const connection = new Connection();
    if (after === undefined) connection.bytes = undefined;
    connection.send();
    connection.send();
    await connection.clock.advance(3 * SECOND);
    const [isStillSilent] = connection.found;
    t.true(isStillSilent?.());
    connection.bytes = after;
    connection.silence.heard();
    connection.send();
    connection.send();
    t.false(isStillSilent?.());
  });
}

test("a connection that was replaced in the meantime is not reported as silent", async (t) => {
  const connection = new Connection();
  connection.send();
  connection.send();
  await connection.clock.advance(3 * SECOND);
  connection.silence.reset();
  t.false(connection.found[0]?.());
});
