import { SERVICE } from "./service";
import type { Starter } from "./starters";

const ROUTE = `import type { NextRequest } from "next/server";
import { pay } from "@/pay";

export async function GET(request: NextRequest): Promise<Response> {
  return new Response(await pay("A1", request.nextUrl.searchParams.get("gate") ?? ""));
}
`;

const CREATE =
  "npx create-next-app@16.4.3 app --ts --eslint --app --src-dir --no-tailwind --no-react-compiler --empty";

/** `init` writes \`instrumentation.ts\`, which calls \`configure()\`. */
export const NEXT: Starter = {
  name: "next",
  create: `${CREATE} --import-alias '@/*' --skip-install --disable-git --yes --use-npm`,
  files: { "src/pay.ts": SERVICE, "src/app/pay/route.ts": ROUTE },
  tagged: "src/pay.ts",
  build: "npm run build",
  start: { command: "npx next start -p {port}", route: "/pay?gate={gate}" },
  lint: "npm run lint",
  check: '--output ".next/server/**/*.js"',
};

/** create-t3-app creates a Next.js application with tRPC. */
export const TRPC: Starter = {
  name: "trpc",
  create: "npx create-t3-app@7.40.0 app --CI --trpc --appRouter --noGit --noInstall",
  files: { "src/server/pay.ts": SERVICE },
  edit: {
    "src/app/layout.tsx": withoutFonts,
    "src/server/api/routers/post.ts": (text) =>
      text
        .replace("import { z }", 'import { pay } from "~/server/pay";\nimport { z }')
        .replace(
          "createTRPCRouter({",
          'createTRPCRouter({\n  pay: publicProcedure.input(z.object({ gate: z.string() })).query(({ input }) => pay("A1", input.gate)),\n',
        ),
  },
  tagged: "src/server/pay.ts",
  build: "npm run build",
  start: {
    command: "npx next start -p {port}",
    route: `/api/trpc/post.pay?input=${encodeURIComponent('{"json":{"gate":"')}{gate}${encodeURIComponent('"}}')}`,
  },
  lint: "npm run typecheck",
  check: '--output ".next/server/**/*.js"',
};

/** Google's fonts cannot be loaded offline. */
function withoutFonts(text: string): string {
  return text
    .replace(/import \{ Geist \}.*\n/, "")
    .replace(/const geist = Geist\(\{[^}]*\}\);\n/, "")
    .replace(" className={geist.className}", "");
}
