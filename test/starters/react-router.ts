import { json, SERVICE } from "./service";
import type { Starter } from "./starters";

export const REACT_ROUTER: Starter = {
  name: "react-router",
  byHand: "create-react-router downloads its template from GitHub",
  // `configure()` belongs in the server's entry file, which React Router creates only on request.
  install: `npm install {lockweave} ioredis@6.0.0 && npx react-router reveal entry.server && echo 'import "./locks";' >> app/entry.server.tsx`,
  files: {
    "package.json": json({
      name: "app",
      private: true,
      type: "module",
      scripts: {
        build: "react-router build",
        dev: "react-router dev",
        start: "react-router-serve ./build/server/index.js",
        typecheck: "react-router typegen && tsc",
      },
      dependencies: {
        "@react-router/node": "8.4.0",
        "@react-router/serve": "8.4.0",
        isbot: "5.2.3",
        react: "19.3.0",
        "react-dom": "19.3.0",
        "react-router": "8.4.0",
      },
      devDependencies: {
        "@react-router/dev": "8.4.0",
        "@types/node": "^24",
        "@types/react": "^19",
        "@types/react-dom": "^19",
        typescript: "^6.0.3",
        vite: "^8.0.16",
      },
    }),
    "tsconfig.json": json({
      include: ["**/*", ".react-router/types/**/*"],
      compilerOptions: {
        lib: ["DOM", "DOM.Iterable", "ES2022"],
        types: ["node", "vite/client"],
        target: "ES2022",
        module: "ES2022",
        moduleResolution: "bundler",
        jsx: "react-jsx",
        rootDirs: [".", "./.react-router/types"],
        esModuleInterop: true,
        verbatimModuleSyntax: true,
        noEmit: true,
        resolveJsonModule: true,
        skipLibCheck: true,
        strict: true,
      },
    }),
    "vite.config.ts": `import { reactRouter } from "@react-router/dev/vite";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [reactRouter()],
});
`,
    "react-router.config.ts": `import type { Config } from "@react-router/dev/config";

export default { ssr: true } satisfies Config;
`,
    "app/root.tsx": `import { Outlet, Scripts } from "react-router";

export default function App() {
  return (
    <html lang="en">
      <body>
        <Outlet />
        <Scripts />
      </body>
    </html>
  );
}
`,
    "app/routes.ts": `import { index, route, type RouteConfig } from "@react-router/dev/routes";

export default [index("routes/home.tsx"), route("pay", "routes/pay.ts")] satisfies RouteConfig;
`,
    "app/routes/home.tsx": `export default function Home() {
  return <h1>Home</h1>;
}
`,
    "app/routes/pay.ts": `import type { Route } from "./+types/pay";
import { pay } from "../pay.server";

export async function loader({ request }: Route.LoaderArgs) {
  return new Response(await pay("A1", new URL(request.url).searchParams.get("gate") ?? ""));
}
`,
    "app/pay.server.ts": SERVICE,
    "app/locks.ts": `import { configure } from "lockweave";

configure({ redis: process.env.REDIS_URL ?? "redis://localhost:6379" });
`,
  },
  tagged: "app/pay.server.ts",
  build: "npm run build",
  start: { command: "npm start", route: "/pay?gate={gate}" },
  lint: "npm run typecheck",
  check: '--output "build/server/**/*.js"',
};
