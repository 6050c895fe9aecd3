import type { Setup } from "../setup";

/** A project on disk. */
export interface Place {
  readonly dir: string;
  readonly setup: Setup;
  /** Whether the builds leave out the plugin, and the program says that it needs none. */
  readonly isDefective: boolean;
}

/** The builds of one project: a second one has what the first left behind. */
export interface Session {
  /**
   * @param isWoven whether Lockweave's plugin is among the others
   * @throws {BuildError} when the host reports errors
   */
  build(isWoven: boolean): Promise<void>;
  /** What starts the program, with Node. It asks for the host's hooks if the host compiles when Node loads a file. */
  command(isWoven: boolean): readonly string[];
  readonly node?: string;
  readonly env?: Readonly<Record<string, string>>;
  close?(): Promise<void>;
}

export type Host = (place: Place) => Session | Promise<Session>;

/** The message is what the host has printed. */
export class BuildError extends Error {}

/** The path of a bundle. */
export function bundleIn({ setup }: Place): string {
  return setup.file === "ts-in-cjs" ? "dist/main.cjs" : "dist/main.mjs";
}

export function formatIn({ setup }: Place): "cjs" | "esm" {
  return setup.file === "ts-in-cjs" ? "cjs" : "esm";
}
