import { NEED_NAME, TAG_NAME, type TagName } from "../../read/spelling";
import { markNamesInTags, type RuleContext } from "./names-in-tags";

interface Rule {
  readonly meta: {
    readonly type: "problem";
    readonly docs: { readonly description: string };
    readonly schema: [];
  };
  /** Creates the rule. The parameter is ESLint's context, but its type is not named, so that the declarations do not depend on ESLint. */
  create(context: never): { Program: () => void };
}

interface Config {
  readonly name: string;
  readonly plugins: { readonly lockweave: Plugin };
  readonly settings: { readonly jsdoc: { readonly structuredTags: Readonly<Record<TagName, object>> } };
  readonly rules: { readonly "lockweave/names-in-tags": "error" };
}

/** The text after a tag, as eslint-plugin-jsdoc describes it: attributes, and no type. */
const ATTRIBUTES = { name: "text", type: false } as const;

/**
 * The plugin. It is a class because TypeScript would offer the properties of a plain object as named imports, which Node does not support.
 */
class Plugin {
  readonly meta: { readonly name: string } = { name: "lockweave" };

  readonly rules: { readonly "names-in-tags": Rule } = {
    "names-in-tags": {
      meta: {
        type: "problem",
        docs: { description: "Mark names in @redisLock tags as used." },
        schema: [],
      },
      create: (context: RuleContext) => ({ Program: () => markNamesInTags(context) }),
    },
  };

  /** The entries for `eslint.config.js`. */
  readonly configs: { readonly recommended: Config } = {
    recommended: {
      name: "lockweave/recommended",
      plugins: { lockweave: this },
      // Defines the tags for eslint-plugin-jsdoc, whose rule `check-tag-names` reports unknown ones.
      settings: { jsdoc: { structuredTags: { [TAG_NAME]: ATTRIBUTES, [NEED_NAME]: ATTRIBUTES } } },
      rules: { "lockweave/names-in-tags": "error" },
    },
  };
}

const plugin = new Plugin();

export = plugin;
