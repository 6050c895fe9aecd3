/** The command that runs `lockweave` in the project of this process. Bun may come without `npx`, and with Yarn Plug'n'Play `npx` finds no packages. */
export const RUNNER = runnerFor(process.versions);

/** @param versions those of the process */
export function runnerFor(versions: object): string {
  if ("bun" in versions) return "bunx";
  return "pnp" in versions ? "yarn" : "npx";
}
