import type { Draft } from "./draft";
import { ESLINT_PLUGIN } from "./eslint";
import type { Project } from "./project";

const PAGE = "node_modules/lockweave/docs/compilers.md";

/** Returns notes about linters and formatters of the project that do not know the tag. */
export function notesOnTools(project: Project, draft: Draft): string[] {
  const notes: string[] = [];
  if (project.has("prettier-plugin-jsdoc")) {
    notes.push(
      "prettier-plugin-jsdoc deletes the value of a tag's first attribute. Fix: turn it off for the files with tags.",
      `Add \`overrides: [{ files: "src/**", options: { plugins: [] } }]\` to Prettier's configuration, or see ${PAGE}.`,
    );
  }
  const config = project.config("eslint.config");
  const isSetUp = config !== undefined && draft.text(config)?.includes(ESLINT_PLUGIN) === true;
  if (config !== undefined && !isSetUp) {
    notes.push(
      "ESLint reports names used only in tags as unused, and `--fix` may remove their imports.",
      `Fix: add \`lockweave.configs.recommended\` from "${ESLINT_PLUGIN}" to ${config}.`,
    );
  }
  if (project.dependsOn("eslint-plugin-jsdoc") && config === undefined) {
    notes.push(
      "eslint-plugin-jsdoc reports the tags as unknown. Fix: add `redisLock` and `needsLock` to `definedTags` of `jsdoc/check-tag-names`.",
    );
  }
  for (const [name, tool] of [
    ["eslint-plugin-tsdoc", "eslint-plugin-tsdoc"],
    ["typedoc", "TypeDoc"],
  ] as const) {
    if (project.dependsOn(name) && project.read("tsdoc.json")?.includes("lockweave/tsdoc.json") !== true)
      notes.push(`${tool} reports the tags as unknown. Fix: extend \`lockweave/tsdoc.json\`. See ${PAGE}.`);
  }
  for (const [name, linter] of [
    ["oxlint", "oxlint"],
    ["@biomejs/biome", "Biome"],
  ] as const) {
    if (project.dependsOn(name))
      notes.push(`${linter} reports names used only in tags as unused. Fix: see ${PAGE}.`);
  }
  if (project.read("nest-cli.json")?.includes("introspectComments") === true) {
    notes.push(
      `The Swagger plugin publishes a tag above a route handler as its summary. Fix: write the tag in a second comment. See ${PAGE}.`,
    );
  }
  return notes;
}
