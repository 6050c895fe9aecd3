import { json, server, SERVICE } from "./service";
import type { Files, Starter } from "./starters";

const COMPILER_OPTIONS = {
  target: "es2022",
  module: "nodenext",
  strict: true,
  skipLibCheck: true,
  types: ["node"],
  rootDir: "src",
  outDir: "dist",
};
const DEV_DEPENDENCIES = { "@types/node": "^24", typescript: "^6.0.3" };

/** Two packages with project references: the tagged function, and the server that calls it. */
const REFERENCES: Files = {
  "tsconfig.json": json({ files: [], references: [{ path: "packages/core" }, { path: "packages/app" }] }),
  "packages/core/package.json": json({ name: "core", type: "module", exports: "./dist/pay.js" }),
  "packages/core/tsconfig.json": json({
    compilerOptions: { ...COMPILER_OPTIONS, composite: true },
    include: ["src"],
  }),
  "packages/core/src/pay.ts": SERVICE,
  "packages/app/package.json": json({
    name: "app",
    type: "module",
    dependencies: { core: "workspace:*" },
  }),
  "packages/app/tsconfig.json": json({
    compilerOptions: { ...COMPILER_OPTIONS, composite: true },
    include: ["src"],
    references: [{ path: "../core" }],
  }),
  "packages/app/src/server.ts": server("core"),
};

/** The target of Nx's package.json that runs esbuild. */
interface EsbuildTarget {
  readonly options: Readonly<Record<string, unknown>>;
}

export const WORKSPACES: readonly Starter[] = [
  {
    name: "pnpm-references",
    byHand: "pnpm has no starter for workspaces",
    tools: ["pnpm"],
    install: "pnpm add --workspace-root {lockweave} ioredis@6.0.0",
    files: {
      ...REFERENCES,
      "package.json": json({
        name: "root",
        private: true,
        type: "module",
        packageManager: "pnpm@12.21.0",
        scripts: { build: "tsc -b" },
        devDependencies: DEV_DEPENDENCIES,
      }),
      "pnpm-workspace.yaml": "packages:\n  - packages/*\n",
    },
    tagged: "packages/core/src/pay.ts",
    build: "pnpm run build",
    start: { command: "node packages/app/dist/server.js", route: "/pay?gate={gate}" },
    check: "",
  },
  {
    name: "yarn-pnp",
    create: "mkdir app && cd app && yarn init --private",
    tools: ["yarn"],
    install:
      "yarn add lockweave@file:{lockweave} ioredis@6.0.0 && yarn add --dev typescript@6.0.3 @types/node@24",
    runner: "yarn",
    files: {
      "tsconfig.json": json({ compilerOptions: COMPILER_OPTIONS, include: ["src"] }),
      "src/pay.ts": SERVICE,
      "src/server.ts": server("./pay.js"),
    },
    edit: {
      "package.json": (text) =>
        json({ ...(JSON.parse(text) as object), type: "module", scripts: { build: "tsc" } }),
    },
    tagged: "src/pay.ts",
    build: "yarn build",
    start: { command: "yarn node dist/server.js", route: "/pay?gate={gate}" },
    check: "",
  },
  {
    name: "turborepo",
    byHand: "create-turbo downloads its template from GitHub",
    home: "apps/api",
    install: "npm install && npm install --workspace api {lockweave} ioredis@6.0.0",
    files: {
      "package.json": json({
        name: "root",
        private: true,
        packageManager: "npm@11.0.0",
        workspaces: ["apps/*"],
        scripts: { build: "turbo run build" },
        devDependencies: { turbo: "2.11.11" },
      }),
      "turbo.json": json({ tasks: { build: { dependsOn: ["^build"], outputs: ["dist/**"] } } }),
      "apps/api/package.json": json({
        name: "api",
        type: "module",
        scripts: { build: "tsc" },
        devDependencies: DEV_DEPENDENCIES,
      }),
      "apps/api/tsconfig.json": json({ compilerOptions: COMPILER_OPTIONS, include: ["src"] }),
      "apps/api/src/pay.ts": SERVICE,
      "apps/api/src/server.ts": server("./pay.js"),
    },
    tagged: "apps/api/src/pay.ts",
    build: "npm run build",
    start: { command: "node dist/server.js", route: "/pay?gate={gate}" },
    check: "",
  },
  {
    name: "nx",
    create:
      "npx create-nx-workspace@23.2.1 app --preset=ts --nxCloud=skip --pm npm --skipGit --no-interactive && cd app && npx nx g @nx/js:lib packages/pay --bundler=tsc --unitTestRunner=none --linter=none --no-interactive",
    files: { "packages/pay/src/lib/pay.ts": SERVICE, "packages/pay/src/server.ts": server("./lib/pay.js") },
    tagged: "packages/pay/src/lib/pay.ts",
    build: "npx nx run-many --target=build",
    start: { command: "node packages/pay/dist/server.js", route: "/pay?gate={gate}" },
    lint: "npx nx run-many --target=typecheck",
    check: "",
  },
  {
    // esbuild compiles the library once more, into the output of the application.
    name: "nx-app",
    create:
      "npx create-nx-workspace@23.2.1 app --preset=ts --nxCloud=skip --pm npm --skipGit --no-interactive && cd app && npm install --save-dev @nx/node@23.2.1 @nx/esbuild@23.2.1 && npx nx g @nx/js:lib packages/pay --bundler=tsc --unitTestRunner=none --linter=none --no-interactive && npx nx g @nx/node:app packages/shop --framework=none --bundler=esbuild --unitTestRunner=none --e2eTestRunner=none --linter=none --no-interactive",
    files: {
      "packages/pay/src/index.ts": 'export * from "./lib/pay.js";\n',
      "packages/pay/src/lib/pay.ts": SERVICE,
      "packages/shop/src/main.ts": server("@app/pay"),
    },
    byUser: {
      "packages/shop/package.json": (text) => {
        const { nx, ...others } = JSON.parse(text) as { nx: { targets: { build: EsbuildTarget } } };
        const { esbuildOptions: _, ...options } = nx.targets.build.options;
        const esbuildConfig = "packages/shop/esbuild.config.cjs";
        const build = { ...nx.targets.build, options: { ...options, esbuildConfig }, configurations: {} };
        return json({ ...others, nx: { ...nx, targets: { ...nx.targets, build } } });
      },
    },
    tagged: "packages/pay/src/lib/pay.ts",
    build: "npx nx sync && npx nx run-many --target=build",
    start: { command: "node packages/shop/dist/main.js", route: "/pay?gate={gate}" },
    check: "",
  },
];
