import { SERVICE } from "./service";
import { documented } from "./service";
import type { Starter } from "./starters";

export const FASTIFY: Starter = {
  name: "fastify",
  create: "npx fastify-cli@8.0.2 generate app --lang=ts",
  files: {
    "src/pay.ts": SERVICE,
    "src/plugins/locks.ts": documented("src/plugins/locks.ts"),
    "src/routes/pay/index.ts": `import { FastifyPluginAsync } from 'fastify'
import { pay } from '../../pay'

const route: FastifyPluginAsync = async (fastify): Promise<void> => {
  fastify.get<{ Querystring: { gate: string } }>('/', async (request) => pay('A1', request.query.gate))
}

export default route
`,
  },
  // The starter asks for TypeScript 6, but its settings and its tests are for TypeScript 5.
  edit: { "package.json": (text) => text.replace('"typescript": "~6.0.2"', '"typescript": "~5.9.3"') },
  tagged: "src/pay.ts",
  build: "npm run build:ts",
  start: { command: "npx fastify start -p {port} dist/app.js", route: "/pay?gate={gate}" },
  test: "npm test",
  check: "",
};
