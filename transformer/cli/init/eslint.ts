import type { Draft } from "./draft";
import { styleOf } from "./plugin-lists";
import type { Project } from "./project";

export const ESLINT_PLUGIN = "lockweave/eslint";

/**
 * Adds our recommended configuration to that of ESLint. It marks names in tags as used, and tells eslint-plugin-jsdoc which tags there are. If
 * the file is not understood, it stays as it is, because a build needs no linter. A note then says what to add.
 */
export function setUpESLint(draft: Draft, project: Project): void {
  const file = project.config("eslint.config");
  if (file === undefined) return;
  draft.edit(file, (config) => {
    const hasName = /\blockweave\b/.test(draft.text(file) ?? "");
    if (hasName || !config.appendToRootList("lockweave.configs.recommended")) return false;
    config.addImport("lockweave", ESLINT_PLUGIN, styleOf(draft, file));
    return true;
  });
}
