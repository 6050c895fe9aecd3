import { stopCommands } from "./processes";
import { runSetup } from "./run-setup";
import { setupNamed } from "./setup";

// A worker process of the sweep. It runs one setup at a time.

const [root = ""] = process.argv.slice(2);

async function answer(name: string): Promise<void> {
  const startedAt = performance.now();
  const result = await runSetup(root, setupNamed(name)).catch((error: unknown) => ({
    outcome: "refused" as const,
    at: "build" as const,
    fault: `the sweep failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
  }));
  process.send?.({ name, ms: performance.now() - startedAt, ...result });
}

process.on("message", (name: string) => void answer(name));
process.once("disconnect", () => {
  stopCommands();
  process.exit();
});
