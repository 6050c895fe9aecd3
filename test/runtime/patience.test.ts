import test from "ava";
import {
  configure,
  LockOptionError,
  memoryStore,
  obtain,
  shutdown,
  type LockError,
} from "../../runtime/index";
import { LockModule } from "../../runtime/nest";
import { VirtualClock } from "../support/virtual-clock";

// How long `shutdown()` waits for running bodies.

const clock = new VirtualClock();

async function timeUntilRevoked(patience: "1m" | undefined): Promise<number> {
  const lock = await obtain("patience");
  const startedAt = clock.now();
  let revokedAt = Infinity;
  lock.signal.addEventListener("abort", () => (revokedAt = clock.now()));
  const ended = shutdown(patience === undefined ? {} : { patience });
  await clock.advance(120_000);
  await ended;
  await lock.release().catch((error: LockError) => error);
  return revokedAt - startedAt;
}

for (const [what, configured, given, expectedMs] of [
  ["10 s by default", undefined, undefined, 10_000],
  ["as long as configure() says", "30s", undefined, 30_000],
  ["as long as its caller says", "30s", "1m", 60_000],
] as const) {
  test.serial(`shutdown() waits for running bodies ${what}`, async (t) => {
    const own = configured === undefined ? {} : { patience: configured };
    configure({ store: memoryStore({ clock }), clock, woven: false, logger: { warn() {} }, ...own });
    t.is(await timeUntilRevoked(given), expectedMs);
  });
}

test.serial("an invalid patience is rejected by configure(), not at shutdown", async (t) => {
  const configuration = { store: memoryStore(), patience: "soon" as "1s" };
  const expected = { instanceOf: LockOptionError, message: /^Expected `patience` to be / };
  t.throws(() => configure({ ...configuration, woven: false }), expected);
  const [locks] = LockModule.forRoot(configuration, "woven").providers as unknown as readonly {
    readonly useFactory: () => Promise<unknown>;
  }[];
  await t.throwsAsync(async () => await locks?.useFactory(), expected);
});
