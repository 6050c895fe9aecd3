import type { Setup } from "../setup";

/** A project on disk. */
export interface Place {
  readonly dir: string;
  readonly setup: Setup;
  /** Whether the builds omit the plugin and the program sets `woven: false`. */
  readonly isDefective: boolean;
}

/** The builds of one project. A second build sees the output and caches of the first. */
export interface Session {
  /**
   * @param isWoven whether the plugins include Lockweave's
   * @throws {BuildError} when the host reports errors
   */
  build(isWoven: boolean): Promise<void>;
  /** Returns the arguments of Node to start the program, including the hooks of hosts that compile at load time. */
  command(isWoven: boolean): readonly string[];
  readonly node?: string;
  readonly env?: Readonly<Record<string, string>>;
  close?(): Promise<void>;
}

export type Host = (place: Place) => Session | Promise<Session>;

/** An error of a build. Its message is the output of the host. */
export class BuildError extends Error {}

/** Returns the path of a bundle. */
export function bundleIn({ setup }: Place): string {
  return setup.file === "ts-in-cjs" ? "dist/main.cjs" : "dist/main.mjs";
}

export function formatIn({ setup }: Place): "cjs" | "esm" {
  return setup.file === "ts-in-cjs" ? "cjs" : "esm";
}
