import { markNamesInTags, type RuleContext } from "./names-in-tags";

interface Plugin {
  readonly meta: { readonly name: string };
  readonly rules: { readonly "names-in-tags": Rule };
  /** Entries for `eslint.config.js`. */
  readonly configs: { readonly recommended: Config };
}

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

const plugin: Plugin = {
  meta: { name: "lockweave" },
  rules: {
    "names-in-tags": {
      meta: {
        type: "problem",
        docs: { description: "Mark names that a @redisLock tag uses as used." },
        schema: [],
      },
      create: (context: RuleContext) => ({ Program: () => markNamesInTags(context) }),
    },
  },
  configs: {
    get recommended(): Config {
      return {
        name: "lockweave/recommended",
        plugins: { lockweave: plugin },
        rules: { "lockweave/names-in-tags": "error" },
      };
    },
  },
};

export = plugin;
