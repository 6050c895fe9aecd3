import test from "ava";
import { systemClock } from "../../../runtime/base/clock";
import { Gathering } from "../../../runtime/stores/postgres/gathering";
import { deferred, type Deferred } from "../../support/deferred";

/** A statement that runs until the test replies. */
interface Statement {
  readonly requests: readonly string[];
  readonly timeoutMs: number;
  readonly reply: Deferred<readonly unknown[]>;
}

const TIMEOUT_MS = 60_000;
const MOST_REQUESTS = 4;

/** Gathers requests for statements that run one at a time. */
function gather(): { gathering: Gathering<string>; statements: Statement[] } {
  const statements: Statement[] = [];
  const send = (requests: readonly string[], timeoutMs: number): Promise<readonly unknown[]> => {
    const reply = deferred<readonly unknown[]>();
    statements.push({ requests, timeoutMs, reply });
    return reply.promise;
  };
  return { gathering: new Gathering(send, 1, MOST_REQUESTS, systemClock), statements };
}

test("requests that arrive while a statement runs share the next statement", async (t) => {
  const { gathering, statements } = gather();
  const first = gathering.call(["a"], TIMEOUT_MS);
  const others = [gathering.call(["b", "c"], TIMEOUT_MS), gathering.call(["d"], TIMEOUT_MS)];
  t.is(statements.length, 1);
  statements[0]?.reply.resolve([1]);
  t.deepEqual(await first, [1]);
  t.deepEqual(statements[1]?.requests, ["b", "c", "d"]);
  statements[1]?.reply.resolve([2, 3, 4]);
  t.deepEqual(await Promise.all(others), [[2, 3], [4]]);
});

test("requests keep their order, and those that do not fit are sent later", async (t) => {
  const { gathering, statements } = gather();
  const first = gathering.call(["a"], TIMEOUT_MS);
  const large = gathering.call(["b", "c", "d"], TIMEOUT_MS);
  const last = [gathering.call(["e", "f"], TIMEOUT_MS), gathering.call(["g"], TIMEOUT_MS)];
  statements[0]?.reply.resolve([1]);
  await first;
  statements[1]?.reply.resolve([2, 3, 4]);
  await large;
  statements[2]?.reply.resolve([5, 6, 7]);
  t.deepEqual(await Promise.all(last), [[5, 6], [7]]);
  t.deepEqual(
    statements.map(({ requests }) => requests),
    [["a"], ["b", "c", "d"], ["e", "f", "g"]],
  );
});

test("an error rejects the requests of its statement, and the next statement follows", async (t) => {
  const { gathering, statements } = gather();
  const first = gathering.call(["a"], TIMEOUT_MS);
  const shared = [gathering.call(["b"], TIMEOUT_MS), gathering.call(["c"], TIMEOUT_MS)];
  statements[0]?.reply.reject(new Error("first"));
  await t.throwsAsync(first, { message: "first" });
  const last = gathering.call(["d"], TIMEOUT_MS);
  statements[1]?.reply.reject(new Error("shared"));
  for (const one of shared) await t.throwsAsync(one, { message: "shared" });
  statements[2]?.reply.resolve([4]);
  t.deepEqual(await last, [4]);
});

test("a request that has timed out is not sent, and does not shorten the timeout of another", async (t) => {
  const { gathering, statements } = gather();
  const first = gathering.call(["a"], TIMEOUT_MS);
  const late = gathering.call(["b"], 0);
  const other = gathering.call(["c"], TIMEOUT_MS);
  statements[0]?.reply.resolve([1]);
  await first;
  await t.throwsAsync(late, { message: "all connections to PostgreSQL were busy" });
  t.deepEqual(statements[1]?.requests, ["c"]);
  t.true((statements[1]?.timeoutMs ?? 0) > TIMEOUT_MS / 2);
  statements[1]?.reply.resolve([3]);
  t.deepEqual(await other, [3]);
});
