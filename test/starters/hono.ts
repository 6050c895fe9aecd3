import { json, SERVICE } from "./service";
import type { Starter } from "./starters";

export const HONO: Starter = {
  name: "hono",
  byHand: "create-hono downloads its template from GitHub",
  files: {
    "package.json": json({
      name: "app",
      type: "module",
      scripts: { dev: "tsx watch src/index.ts", build: "tsc", start: "node dist/index.js" },
      dependencies: { "@hono/node-server": "^2.1.9", hono: "4.13.19" },
      devDependencies: { "@types/node": "^24", tsx: "^4.23.15", typescript: "^6.0.3" },
    }),
    "tsconfig.json": json({
      compilerOptions: {
        target: "ESNext",
        module: "NodeNext",
        strict: true,
        verbatimModuleSyntax: true,
        skipLibCheck: true,
        types: ["node"],
        jsx: "react-jsx",
        jsxImportSource: "hono/jsx",
        outDir: "./dist",
        rootDir: "./src",
      },
      exclude: ["node_modules"],
    }),
    "src/pay.ts": SERVICE,
    "src/index.ts": `import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { configure } from 'lockweave'
import { pay } from './pay.js'

configure({ redis: process.env.REDIS_URL ?? 'redis://localhost:6379' })

const app = new Hono()

app.get('/', (c) => c.text('Hello Hono!'))
app.get('/pay', async (c) => c.text(await pay('A1', c.req.query('gate') ?? '')))

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) })
`,
  },
  tagged: "src/pay.ts",
  build: "npm run build",
  start: { command: "npm start", route: "/pay?gate={gate}" },
  check: "",
};
