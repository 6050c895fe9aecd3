import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import test from "ava";
import { NODE } from "../support/node";

// Two rounds of the torture on one node, 15 s each. `npm run proof -- torture` plays more, and on all topologies.

/** The seeds of the rounds. The seed decides whether a round has faults. */
const ROUNDS = { "with faults": 5, "without faults": 6 };

const [node, ...options] = NODE;

for (const [name, seed] of Object.entries(ROUNDS)) {
  test.serial(
    `a round ${name} among real processes breaks no promise and leaves nothing behind`,
    async (t) => {
      const args = [...options, join(__dirname, "torture.ts"), "0", String(seed)];
      const torture = spawn(node, args, { stdio: ["ignore", "pipe", "pipe"] });
      t.teardown(() => torture.kill());
      const [stdout, stderr, [code]] = await Promise.all([
        text(torture.stdout),
        text(torture.stderr),
        once(torture, "close"),
      ]);
      t.is(code, 0, `${stdout}${stderr}`);
      t.is(stdout.includes("1 calm round"), name === "without faults", stdout);
    },
  );
}
