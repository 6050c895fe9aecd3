import type { Project } from "./project";

const PAGE = "node_modules/lockweave/docs/compilers.md";

/** Returns notes about linters and formatters of the project that do not know the tag. */
export function notesOnTools(project: Project): string[] {
  const notes: string[] = [];
  if (project.has("prettier-plugin-jsdoc")) {
    notes.push(
      "prettier-plugin-jsdoc deletes the value of a tag's first attribute. Fix: turn it off for the files with tags.",
      `Add \`overrides: [{ files: "src/**", options: { plugins: [] } }]\` to Prettier's configuration, or see ${PAGE}.`,
    );
  }
  const config = project.config("eslint.config");
  if (config !== undefined && project.read(config)?.includes("lockweave/eslint") !== true) {
    notes.push(
      "ESLint reports names used only in tags as unused, and `--fix` may remove their imports.",
      `Fix: add \`lockweave.configs.recommended\` from "lockweave/eslint" to ${config}.`,
    );
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
