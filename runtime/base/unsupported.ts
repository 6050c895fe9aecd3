/** A place where Lockweave cannot run, by the name of its entry files: `not-in-browser.mjs`. */
export type Unsupported = "browser" | "edge" | "workers";

/** The texts about each place for errors at the import and at the build. */
export const UNSUPPORTED: Readonly<
  Record<Unsupported, { readonly where: string; readonly why: string; readonly fix: string }>
> = {
  browser: {
    where: "in a browser",
    why: "It needs Node.js, and this build uses the package's `browser` condition",
    fix: 'import locked functions only in code for the server. If this build is for a server, build it for Node.js: `platform: "node"` (esbuild), `target: "node"` (webpack, Rspack, Bun), or `build.ssr` (Vite)',
  },
  edge: {
    where: "in an edge runtime",
    why: "It needs Node.js and TCP connections",
    fix: 'run this route or middleware on Node.js (in Next.js: `export const runtime = "nodejs"`), or call a route that runs there',
  },
  workers: {
    where: "in Cloudflare Workers",
    why: "A connection there ends with its request, and the clock does not advance while code runs, so a lock could be lost unnoticed",
    fix: "move the locked function into a service on Node.js, and call the service",
  },
};

/** Returns the error text of the entry files for a place where Lockweave cannot run. */
export function refusalIn(place: Unsupported): string {
  const { where, why, fix } = UNSUPPORTED[place];
  return `lockweave cannot run ${where}. ${why}. Fix: ${fix}${place === "browser" ? ADVICE_ON_JSDOM : ""}`;
}

const ADVICE_ON_JSDOM =
  '. If this is a test in Jest with jsdom, set `testEnvironmentOptions: { customExportConditions: ["node"] }`';
