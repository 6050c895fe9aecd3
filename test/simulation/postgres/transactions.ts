import type { Caller } from "../caller";
import type { SeededRandom } from "../../support/seeded-random";
import type { SimulatedPostgres } from "./server";

/** The time of a statement of the application. */
const STATEMENT_MS = 5;

/** Runs a transaction of the application in the body of a caller. It guards the lock, and commits before or after the body ends. */
export async function transact(
  { lock, process }: Caller,
  server: SimulatedPostgres,
  random: SeededRandom,
): Promise<void> {
  if (server.isDown || !random.happens(0.4)) return;
  const transaction = server.begin(random.happens(0.5));
  // It may read for a while before it guards, and it may be paused anywhere.
  await process.passes(random.below(random.oneOf(1, 20, 1_000)));
  try {
    await lock.guard(async (sql) => {
      await process.passes(random.next() * STATEMENT_MS);
      return transaction.query(sql);
    });
  } catch {
    server.end(transaction, false);
    return;
  }
  await process.passes(random.below(random.oneOf(1, 50, 3_000)));
  if (random.happens(0.1)) server.end(transaction, false);
  else if (random.happens(0.6)) server.end(transaction, true);
  // The lock was used inside of an outer transaction.
  else process.clock.after(random.below(2_000), () => server.end(transaction, true));
}
