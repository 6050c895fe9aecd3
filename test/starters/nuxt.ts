import { json, SERVICE } from "./service";
import type { Starter } from "./starters";

/** `init` writes `server/plugins/lockweave.ts`, which calls `configure()`. */
export const NUXT: Starter = {
  name: "nuxt",
  byHand: "create-nuxt downloads its template from GitHub",
  // `lockweave check` needs TypeScript, as `init` says.
  install: "npm install {lockweave} ioredis@6.0.0 && npm install --save-dev typescript@6",
  files: {
    "package.json": json({
      name: "app",
      type: "module",
      private: true,
      scripts: {
        build: "nuxt build",
        dev: "nuxt dev",
        generate: "nuxt generate",
        preview: "nuxt preview",
        postinstall: "nuxt prepare",
      },
      dependencies: { nuxt: "4.5.2", vue: "^3.5.0", "vue-router": "^5.0.0" },
    }),
    "tsconfig.json": json({
      files: [],
      references: ["app", "server", "shared", "node"].map((name) => ({
        path: `./.nuxt/tsconfig.${name}.json`,
      })),
    }),
    "nuxt.config.ts": `// https://nuxt.com/docs/api/configuration/nuxt-config
export default defineNuxtConfig({
  compatibilityDate: '2025-07-15',
  devtools: { enabled: true }
})
`,
    "app/app.vue": "<template><h1>Home</h1></template>\n",
    "server/pay.ts": SERVICE,
    "server/routes/pay.get.ts": `import { pay } from "../pay";

export default defineEventHandler((event) => pay("A1", String(getQuery(event).gate)));
`,
  },
  tagged: "server/pay.ts",
  build: "npm run build",
  start: { command: "node .output/server/index.mjs", route: "/pay?gate={gate}" },
  check: '--output ".output/server/**/*.mjs"',
};
