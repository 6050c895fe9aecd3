import { json, SERVICE } from "./service";
import type { Starter } from "./starters";

/** A function of AWS Lambda in one ES module. The command calls its handler once. */
export const LAMBDA: Starter = {
  name: "lambda",
  byHand: "AWS has no npm starter that builds one ES module with esbuild",
  files: {
    "package.json": json({
      name: "app",
      type: "module",
      scripts: { build: "node esbuild.config.mjs", typecheck: "tsc --noEmit" },
      devDependencies: { "@types/node": "^24", esbuild: "^0.28.2", typescript: "^6.0.3" },
    }),
    "tsconfig.json": json({
      compilerOptions: {
        target: "es2022",
        module: "esnext",
        moduleResolution: "bundler",
        strict: true,
        skipLibCheck: true,
        types: ["node"],
      },
      include: ["src"],
    }),
    "esbuild.config.mjs": `import { build } from "esbuild";

await build({
  entryPoints: ["src/main.ts"],
  bundle: true,
  platform: "node",
  format: "esm",
  banner: {
    js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
  },
  outfile: "dist/main.mjs",
});
`,
    "src/pay.ts": SERVICE,
    "src/main.ts": `import { configure } from "lockweave";
import { pay } from "./pay";

configure({ redis: process.env.REDIS_URL ?? "redis://localhost:6379" });

export async function handler(event: { readonly id: string; readonly gate: string }): Promise<string> {
  return await pay(event.id, event.gate);
}
`,
    "invoke.mjs": `import { handler } from "./dist/main.mjs";

console.log(await handler({ id: "A1", gate: process.env.GATE }));
process.exit();
`,
  },
  tagged: "src/pay.ts",
  build: "npm run build",
  start: { command: "node invoke.mjs" },
  lint: "npm run typecheck",
  check: '--output "dist/*.mjs"',
};
