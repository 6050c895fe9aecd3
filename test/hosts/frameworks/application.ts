import { codeUnder } from "../bundlers/recipes";
import { installed } from "../installed";
import { linkPackages } from "../link";
import { makeProject, type Files, type Project } from "../project";

// Projects with the code of docs/frameworks.md.

/** Returns the `node_modules` with the frameworks. */
export function frameworks(): Promise<string> {
  return installed("frameworks");
}

/**
 * The tagged function of the page. Its body ends when the gate answers. It does not wait for an order that begins with
 * `busy`.
 */
export const ORDERS: Files = {
  "src/orders.ts": `import type { Duration } from "lockweave";

function waitOf(orderNo: string): Duration {
  return orderNo.startsWith("busy") ? "0ms" : "5m";
}

/** @redisLock businessFlag=pay keyName=orderNo wait="\${waitOf(orderNo)}" lockTime=5m */
export async function pay(orderNo: string): Promise<string> {
  await fetch(process.env.GATE ?? "");
  return \`paid \${orderNo}\`;
}
`,
};

/** Prints when a caller begins to wait. */
export const WAITS: Files = {
  "waits.mjs": `import { subscribe } from "node:diagnostics_channel";
subscribe("lockweave:wait", ({ key }) => console.log("waits for", key));
`,
};

/** Returns the code under a heading of docs/frameworks.md, with times for a busy machine. */
export function documented(heading: string, file: string): string {
  return codeUnder(heading, file, "frameworks.md")
    .replace('"redis://localhost:6379"', '"", commandTimeout: "1m"')
    .replace('"30s"', '"5m"');
}

/** Creates a project that has the frameworks. */
export async function makeApplication(files: Files): Promise<Project> {
  const project = await makeProject({ ...ORDERS, ...WAITS, ...files }, { types: ["node"] });
  await linkPackages(project, ["frameworks"], ["ioredis", "esbuild"]);
  return project;
}
