// npm run check: runs all checks at once, and prints the output of each when it ends. `npm run check -- lint` runs some of them.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { buffer } from "node:stream/consumers";

const CHECKS = {
  lint: "oxlint --type-aware --type-check --deny-warnings --quiet",
  format: "prettier --check --log-level warn .",
  unused: "knip",
  package: "publint --strict && attw --pack . --quiet",
};

async function run(name) {
  const child = spawn(CHECKS[name], { stdio: ["ignore", "pipe", "pipe"], shell: true });
  const [out, error, [code]] = await Promise.all([
    buffer(child.stdout),
    buffer(child.stderr),
    once(child, "close"),
  ]);
  process.stdout.write(out);
  process.stderr.write(error);
  if (code === 0) return;
  console.error(`The check failed. To run it alone: npm run check -- ${name}`);
  process.exitCode = 1;
}

const names = process.argv.slice(2);
const unknown = names.filter((name) => !Object.hasOwn(CHECKS, name));
if (unknown.length > 0) {
  console.error(`There is no check ${unknown.join(", ")}. The checks are ${Object.keys(CHECKS).join(", ")}.`);
  process.exit(2);
}
await Promise.all((names.length > 0 ? names : Object.keys(CHECKS)).map(run));
