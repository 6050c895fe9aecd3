import { existsSync } from "node:fs";
import { mkdir, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { codeUnder } from "../bundlers/recipes";
import { installed } from "../installed";
import { makeProject, PACKAGE, type Files, type Project } from "../project";

// Projects with the code of docs/frameworks.md.

const PACKAGES = [
  "express@5.3.0",
  "@types/express@5.0.6",
  "fastify@5.12.8",
  "fastify-plugin@6.0.1",
  "fastify-cli@8.0.2",
  "hono@4.13.19",
  "@hono/node-server@2.1.9",
  "@types/aws-lambda@8.10.164",
  "kubernetes-types@1.30.0",
  "yaml@2.9.1",
];

/** Returns the `node_modules` with the frameworks. */
export function frameworks(): Promise<string> {
  return installed(PACKAGES, "frameworks");
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
  const modules = [await frameworks(), join(PACKAGE, "node_modules")];
  const names = PACKAGES.map((spec) => spec.replace(/(?!^)@.*/, ""));
  for (const name of [...names, "ioredis", "esbuild"]) {
    const home = modules.find((dir) => existsSync(join(dir, name)));
    if (home === undefined) throw new Error(`${name} is not installed`);
    const path = project.path(`node_modules/${name}`);
    await mkdir(dirname(path), { recursive: true });
    await symlink(join(home, name), path);
  }
  return project;
}
