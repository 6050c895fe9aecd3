// Apart from what weaves, since the declarations of plugins lead here: they must not ask for a TypeScript with an API.

/** What a plugin of lockweave takes, in each host that sees one file at a time. */
export interface PluginOptions {
  /** For all tags of the project that do not say otherwise, in the words of the tag. */
  readonly defaults?: Readonly<Record<string, unknown>>;
}
