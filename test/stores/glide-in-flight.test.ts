import test from "ava";
import { InFlight } from "../../runtime/stores/redis/glide/in-flight";
import { deferred } from "../support/deferred";

// How many commands of a client of GLIDE have no reply yet.

const LIMIT = 4; // The store uses half of it.

test("a command that waits too long for a free slot rejects, and is never sent", async (t) => {
  const inFlight = new InFlight(LIMIT);
  const replies = [deferred(), deferred()];
  const first = replies.map(({ promise }) => inFlight.run(() => promise, 60_000));
  await t.throwsAsync(
    inFlight.run(() => Promise.resolve(t.fail()), 1),
    { message: /too many other commands/ },
  );
  for (const { resolve } of replies) resolve();
  await Promise.all(first);
  t.is(await inFlight.run(() => Promise.resolve("sent"), 60_000), "sent");
});

test("commands that wait for a free slot are sent in order, one for each reply", async (t) => {
  const inFlight = new InFlight(LIMIT);
  const [one, two] = [deferred(), deferred()];
  const sent: string[] = [];
  const first = [one, two].map(({ promise }) => inFlight.run(() => promise, 60_000));
  const held = deferred();
  const waiting = ["a", "b", "c"].map((name) =>
    inFlight.run(() => {
      sent.push(name);
      return held.promise;
    }, 60_000),
  );
  t.deepEqual(sent, []);
  one.resolve();
  await first[0];
  t.deepEqual(sent, ["a"]);
  two.resolve();
  await first[1];
  t.deepEqual(sent, ["a", "b"]);
  held.resolve();
  await Promise.all(waiting);
  t.deepEqual(sent, ["a", "b", "c"]);
});
