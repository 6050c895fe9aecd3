import { json, SERVICE } from "./service";
import type { Starter } from "./starters";

/** `init` writes `src/middleware.ts`, which calls `configure()`. */
export const ASTRO: Starter = {
  name: "astro",
  byHand: "create-astro downloads its template from GitHub",
  files: {
    "package.json": json({
      name: "app",
      type: "module",
      scripts: { dev: "astro dev", build: "astro build", preview: "astro preview", astro: "astro" },
      dependencies: { "@astrojs/node": "11.1.6", astro: "7.3.5" },
      devDependencies: { "@astrojs/check": "*", "@types/node": "^24", typescript: "^6.0.3" },
    }),
    "tsconfig.json": json({
      extends: "astro/tsconfigs/strict",
      include: [".astro/types.d.ts", "**/*"],
      exclude: ["dist"],
    }),
    "astro.config.mjs": `// @ts-check
import { defineConfig } from 'astro/config';
import node from '@astrojs/node';

// https://astro.build/config
export default defineConfig({
  output: 'server',
  adapter: node({ mode: 'standalone' }),
});
`,
    "src/pages/index.astro": "<h1>Home</h1>\n",
    "src/pages/pay.ts": `import type { APIRoute } from "astro";
import { pay } from "../pay";

export const GET: APIRoute = async ({ url }) => new Response(await pay("A1", url.searchParams.get("gate") ?? ""));
`,
    "src/pay.ts": SERVICE,
  },
  tagged: "src/pay.ts",
  build: "npm run build",
  start: { command: "node dist/server/entry.mjs", route: "/pay?gate={gate}" },
  lint: "npx astro check",
  check: '--output "dist/server/**/*.mjs"',
};
