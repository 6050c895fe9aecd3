// Runs several npm scripts at once, and prints the output of each when it ends.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { buffer } from "node:stream/consumers";

async function run(script) {
  const child = spawn("npm", ["run", "--silent", script], {
    stdio: ["ignore", "pipe", "pipe"],
    shell: process.platform === "win32",
  });
  const [out, error, [code]] = await Promise.all([
    buffer(child.stdout),
    buffer(child.stderr),
    once(child, "close"),
  ]);
  process.stdout.write(out);
  process.stderr.write(error);
  if (code === 0) return;
  console.error(`npm run ${script} has failed.`);
  process.exitCode = 1;
}

await Promise.all(process.argv.slice(2).map(run));
