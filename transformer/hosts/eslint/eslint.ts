import { markNamesInTags, type RuleContext } from "./names-in-tags";

interface Rule {
  readonly meta: {
    readonly type: "problem";
    readonly docs: { readonly description: string };
    readonly schema: [];
  };
  /** Takes ESLint's context. It is not named here, so that the types do not need ESLint. */
  create(context: never): { Program: () => void };
}

interface Config {
  readonly name: string;
  readonly plugins: { readonly lockweave: Plugin };
  readonly rules: { readonly "lockweave/names-in-tags": "error" };
}

/** A class, because TypeScript would offer the properties of a plain object as named imports, which Node does not have. */
class Plugin {
  readonly meta: { readonly name: string } = { name: "lockweave" };

  readonly rules: { readonly "names-in-tags": Rule } = {
    "names-in-tags": {
      meta: {
        type: "problem",
        docs: { description: "Mark names that a @redisLock tag uses as used." },
        schema: [],
      },
      create: (context: RuleContext) => ({ Program: () => markNamesInTags(context) }),
    },
  };

  /** Entries for `eslint.config.js`. */
  readonly configs: { readonly recommended: Config } = {
    recommended: {
      name: "lockweave/recommended",
      plugins: { lockweave: this },
      rules: { "lockweave/names-in-tags": "error" },
    },
  };
}

const plugin = new Plugin();

export = plugin;
