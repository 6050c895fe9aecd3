import { server, SERVICE } from "./service";
import type { Starter } from "./starters";

export const VITE: Starter = {
  name: "vite",
  create: "npm create vite@9.3.0 app -- --template vanilla-ts --no-interactive --overwrite",
  install: "npm install {lockweave} ioredis@6.0.0 @types/node@24",
  files: { "src/pay.ts": SERVICE, "src/server.ts": server("./pay") },
  edit: { "tsconfig.json": (text) => text.replace('"vite/client"', '"vite/client", "node"') },
  tagged: "src/pay.ts",
  build: "npx tsc && npx vite build --ssr src/server.ts",
  start: { command: "node dist/server.js", route: "/pay?gate={gate}" },
  check: '--output "dist/**/*.js"',
};
