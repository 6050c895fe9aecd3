/** The values of `--store`. */
export const STORE_NAMES = ["redis", "postgres"] as const;

export type StoreName = (typeof STORE_NAMES)[number];

/** The store of a project's locks, and what `init` does and prints for it. Only `lockStoreOf` chooses it. */
export interface LockStore {
  readonly server: "Redis" | "PostgreSQL";
  /** Lines for the list of what was found. */
  readonly found: readonly string[];
  /** The packages to install, unless the project has them. */
  readonly packages: readonly string[];
  /** The steps that a person must do by hand. */
  readonly byHand: readonly {
    readonly file: string;
    readonly why: string;
    readonly lines: readonly string[];
  }[];
  /** The argument of `configure()` with a URL, or with a client if no package of the project connects to a URL. */
  readonly argument: string;
  /** The argument for an application, which reads the URL from its environment. Absent if no package of the project connects to a URL. */
  readonly argumentFromEnvironment?: string;
  /** The argument of `configure()` to propose, and what to say about it. */
  readonly proposed: { readonly argument: string; readonly about: string };
  /** The commands to run before the first lock. */
  readonly steps: readonly { readonly command: string; readonly about: string }[];
}
