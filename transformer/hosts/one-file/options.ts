// This file is separate from the weaver because the declarations of the plugins import it. They must not require a TypeScript with an API.

/** The options of a Lockweave plugin in each host that sees one file at a time. */
export interface PluginOptions {
  /** The defaults for tags that do not set these options. They have the same names and values as in a tag. */
  readonly defaults?: Readonly<Record<string, unknown>>;
}
