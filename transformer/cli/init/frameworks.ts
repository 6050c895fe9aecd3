import { NOT_UNDERSTOOD, type Draft } from "./draft";
import type { Host } from "./host";
import { addPlugin, pluginLines } from "./plugin-lists";
import type { Project } from "./project";
import { commandFor } from "./scripts";

/** A framework that builds its server with Vite. */
interface Framework {
  readonly name: string;
  readonly package: string;
  /** The program that builds. */
  readonly tool: string;
  /** The name of the configuration without its extension. */
  readonly config: string;
  /** The property path of each list of plugins in the configuration. */
  readonly lists: readonly (readonly string[])[];
  /** The file that the server runs before it handles requests. */
  readonly start: string;
}

const FRAMEWORKS: readonly Framework[] = [
  {
    name: "SvelteKit",
    package: "@sveltejs/kit",
    tool: "vite",
    config: "vite.config",
    lists: [["plugins"]],
    start: "src/hooks.server.ts",
  },
  {
    name: "React Router",
    package: "@react-router/dev",
    tool: "react-router",
    config: "vite.config",
    lists: [["plugins"]],
    start: "app/entry.server.tsx",
  },
  {
    name: "Astro",
    package: "astro",
    tool: "astro",
    config: "astro.config",
    lists: [["vite", "plugins"]],
    start: "src/middleware.ts",
  },
  {
    name: "Nuxt",
    package: "nuxt",
    tool: "nuxt",
    config: "nuxt.config",
    // Vite builds the application, and Nitro builds the files under `server`.
    lists: [
      ["vite", "plugins"],
      ["nitro", "rollupConfig", "plugins"],
    ],
    start: "server/plugins/lockweave.ts",
  },
];

/** Whether a framework runs Vite for the project. If so, Vite's own command cannot build another entry. */
export function hasFramework(project: Project): boolean {
  return FRAMEWORKS.some((framework) => project.dependsOn(framework.package));
}

/** The hosts for the frameworks. They have no `tryOut`, because they always build the whole application. */
export const FRAMEWORK_HOSTS: readonly Host[] = FRAMEWORKS.map((framework) => ({
  name: framework.name,
  evidence: (project) =>
    project.dependsOn(framework.package) ? `\`${framework.package}\` in package.json` : undefined,
  setUp: (draft, project) => setUp(draft, project, framework),
  next: (project, draft) => ({
    command: commandFor(project, draft, framework.tool, "build"),
    about: `builds with locks. Call \`configure()\` in ${framework.start}`,
  }),
}));

function setUp(draft: Draft, project: Project, { name, config, lists }: Framework): void {
  const file = project.config(config);
  if (file === undefined) {
    draft.byHand.push({
      file: `${config}.ts`,
      why: `${name} has no configuration file. Create one with`,
      lines: pluginLines("lockweave/vite", lists, "import"),
    });
  } else if (!addPlugin(draft, file, "lockweave/vite", lists)) {
    draft.byHand.push({ file, why: NOT_UNDERSTOOD, lines: pluginLines("lockweave/vite", lists, "import") });
  }
}
