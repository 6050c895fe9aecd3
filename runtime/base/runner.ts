/**
 * The command that runs `lockweave` for the user of this process. `npx` may not exist beside Bun, and finds no packages in a project with Yarn
 * Plug'n'Play. It finds those that pnpm and other versions of Yarn install.
 */
export const RUNNER = runnerFor(process.versions);

export function runnerFor(versions: object): string {
  if ("bun" in versions) return "bunx";
  return "pnp" in versions ? "yarn" : "npx";
}
