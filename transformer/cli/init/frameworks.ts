import { NOT_UNDERSTOOD, type Draft } from "./draft";
import type { Host } from "./host";
import { addPlugin, pluginLines } from "./plugin-lists";
import type { Project } from "./project";
import { commandFor } from "./scripts";
import { createStartup, type Startup } from "./startup";

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
  readonly startup: Startup;
  /** Returns whether the configuration builds a server. Otherwise, `init` does not create the startup file. */
  readonly buildsServer?: RegExp;
  /** The pattern of the built server. */
  readonly output: string;
}

const FRAMEWORKS: readonly Framework[] = [
  {
    name: "SvelteKit",
    package: "@sveltejs/kit",
    tool: "vite",
    config: "vite.config",
    lists: [["plugins"]],
    startup: {
      places: ["src/hooks.server", "src/hooks.server/index"],
      text: (configureCall) => `import { configure } from "lockweave";\n\n${configureCall}\n`,
    },
    output: "build/**/*.js",
  },
  {
    name: "React Router",
    package: "@react-router/dev",
    tool: "react-router",
    config: "vite.config",
    lists: [["plugins"]],
    startup: { places: ["app/entry.server"], extension: "tsx", creation: "react-router reveal entry.server" },
    output: "build/server/**/*.js",
  },
  {
    name: "Astro",
    package: "astro",
    tool: "astro",
    config: "astro.config",
    lists: [["vite", "plugins"]],
    startup: {
      places: ["src/middleware", "src/middleware/index"],
      text: (configureCall) => `import { defineMiddleware } from "astro:middleware";
import { configure } from "lockweave";

${configureCall}

// Astro needs this export.
export const onRequest = defineMiddleware((_, next) => next());
`,
    },
    buildsServer: /\badapter\b/,
    output: "dist/server/**/*.mjs",
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
    startup: {
      places: ["server/plugins/lockweave"],
      text: (configureCall) => `import { configure } from "lockweave";

export default defineNitroPlugin(() => {
  ${configureCall}
});
`,
    },
    output: ".output/server/**/*.mjs",
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
    about: "builds with locks",
    output: framework.output,
  }),
  isFramework: true,
  startup: framework.startup,
}));

function setUp(draft: Draft, project: Project, framework: Framework): void {
  const { name, config, lists, startup, buildsServer } = framework;
  const file = project.config(config);
  if (file === undefined) {
    draft.byHand.push({
      file: `${config}.ts`,
      why: `${name} has no configuration file. Create one with`,
      lines: pluginLines("lockweave/vite", lists, "import"),
    });
  } else if (!addPlugin(draft, file, "lockweave/vite", lists)) {
    draft.byHand.push({ file, why: NOT_UNDERSTOOD, lines: pluginLines("lockweave/vite", lists, "import") });
  } else if (buildsServer?.test(draft.text(file) ?? "") !== false) {
    createStartup(draft, project, startup);
  }
}
