import { execFile } from "node:child_process";
import { promisify } from "node:util";
import test from "ava";
import { NODE } from "../support/node";

// A confirmer asks the replicas of one server about the holds of a whole process. A closed one answers each hold, and sends nothing.

const SCRIPT = `
const { Confirmer } = require("./runtime/stores/redis/confirmer.ts");
const clock = { now: () => performance.now(), afterInBackground: () => () => {} };
const confirmer = new Confirmer(() => {}, 1, () => 0, clock);
confirmer.close();
const requestOf = (_, n) => ({ key: "LOCK_pay_" + n, requestId: "" + n, lockTimeMs: 30_000, fencing: false, replicas: 1 });
const requests = Array.from({ length: 150_000 }, requestOf);
Promise.all(requests.map((request) => confirmer.confirm(request, false, 1_000)))
  .then((replies) => console.log(new Set(replies.map(String))));
`;

test("more holds can be renewed together than a function call can have arguments", async (t) => {
  const [node, ...options] = NODE;
  // The limit depends on the stack, which is larger in the thread of a test.
  const { stdout } = await promisify(execFile)(node, [...options, "-e", SCRIPT]);
  t.is(stdout, "Set(1) { 'Error: the store is closed' }\n");
});
