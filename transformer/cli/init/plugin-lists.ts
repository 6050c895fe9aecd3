import type * as TS from "typescript";
import type { ConfigText } from "./config-text";
import type { Draft } from "./draft";

/** How a configuration imports the plugin. */
export type ImportStyle = "import" | "require";

/**
 * Adds the plugin to each list of the object that the file exports, and imports it.
 *
 * @param lists the names that lead to each list, such as `vite`, `plugins`
 * @returns whether the file was understood
 */
export function addPlugin(
  draft: Draft,
  file: string,
  from: string,
  lists: readonly (readonly string[])[],
): boolean {
  const style = styleOf(draft, file);
  return draft.edit(file, (config) => {
    if (draft.text(file)?.includes(from) === true) return true; // The file already has the plugin.
    const root = config.root();
    return root !== undefined && addToLists(config, root, lists, from, style);
  });
}

/** Adds the plugin to lists of an object inside the configuration. */
export function addToLists(
  config: ConfigText,
  object: TS.ObjectLiteralExpression,
  lists: readonly (readonly string[])[],
  from: string,
  style: ImportStyle,
): boolean {
  if (!lists.every((path) => addToList(config, object, path))) return false;
  config.addImport("lockweave", from, style);
  return true;
}

/** Adds the plugin to one list, without an import. */
export function addToList(
  config: ConfigText,
  object: TS.ObjectLiteralExpression,
  [name = "", ...inner]: readonly string[],
): boolean {
  const list = config.arrayAt(object, name);
  const next = config.objectAt(object, name);
  if (inner.length > 0 && next !== undefined) return addToList(config, next, inner);
  // The plugin goes first, because other plugins may remove comments.
  if (inner.length === 0 && list !== undefined) config.addElement(list, "lockweave()", "first");
  else if (config.value(object, name) !== undefined || !config.isWhole(object)) return false;
  else config.addProperties(object, { [name]: nested(inner) });
  return true;
}

/** Returns the code `{ rollupConfig: { plugins: [lockweave()] } }` for the path `rollupConfig`, `plugins`. */
function nested(path: readonly string[], list = "[lockweave()]"): string {
  return path.reduceRight((code, name) => `{ ${name}: ${code} }`, list);
}

export function styleOf(draft: Draft, file: string): ImportStyle {
  const text = draft.text(file) ?? "";
  const isScript =
    /\.c?js$/.test(file) && /\bmodule\.exports\b|\brequire\(/.test(text) && !/^import\b/m.test(text);
  return isScript ? "require" : "import";
}

/** Returns the lines that a user adds by hand. */
export function pluginLines(
  from: string,
  lists: readonly (readonly string[])[],
  style: ImportStyle,
): string[] {
  const line =
    style === "import" ? `import lockweave from "${from}";` : `const lockweave = require("${from}");`;
  return [
    line,
    ...lists.map(
      ([name = "", ...inner]) => `${name}: ${nested(inner, "[lockweave(), /* before the others */]")},`,
    ),
  ];
}
