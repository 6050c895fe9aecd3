import { join } from "node:path";
import { fileWeaver, type PluginOptions } from "../one-file/weaver";
import { parser } from "../../parser/parser";
import { COMPONENTS } from "./components";
import { AS_TEXT, INSTALLED, SOURCE_FILES } from "./source-files";

// The parts of webpack's and Rspack's plugins that are used here, in words of our own. (A type, not an interface:
// webpack asks for objects that may have any property, and an interface does not pass for one.)

type Plugin = {
  apply(compiler: { readonly options: { readonly module: { readonly rules: unknown[] } } }): void;
};

/**
 * Weaves what webpack or Rspack builds, before the other loaders.
 *
 * @throws {TypeError} when the options are none
 */
function lockweave(options: PluginOptions = {}): Plugin {
  fileWeaver(parser(), options); // So that options which are none are an error here, and not one for each file.
  const rule = {
    enforce: "pre",
    test: [SOURCE_FILES, COMPONENTS],
    exclude: INSTALLED,
    resourceQuery: { not: [AS_TEXT] },
    use: { loader: join(__dirname, "loader.js"), options },
  };
  return {
    apply: ({ options: { module } }) => {
      module.rules.unshift(rule);
    },
  };
}

export = lockweave;
