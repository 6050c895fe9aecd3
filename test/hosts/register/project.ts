import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { makeProject, PACKAGE, type Files, type Project, type Settings } from "../project";

/** What a host is started with, as its users write it. */
export const HOSTS = {
  Node: ["--import", "lockweave/register"],
  tsx: ["--import", "tsx", "--import", "lockweave/register"],
  "ts-node": ["--require", "ts-node/register/transpile-only", "--require", "lockweave/register"],
  "ts-node with type check": ["--require", "ts-node/register"],
  "ts-node for ES modules": ["--import", "./ts-node-esm.mjs", "--import", "lockweave/register"],
} as const;

/** A project with the hosts in it. */
export async function makeHosted(files: Files, settings: Settings = {}): Promise<Project> {
  const project = await makeProject(
    {
      "ts-node-esm.mjs": `import { register } from "node:module";
process.env.TS_NODE_TRANSPILE_ONLY = "true";
register("ts-node/esm", import.meta.url);
`,
      ...files,
    },
    settings,
  );
  for (const name of ["tsx", "ts-node"]) {
    await symlink(join(PACKAGE, "node_modules", name), project.path(`node_modules/${name}`));
  }
  return project;
}

/** Sets up ts-node with type check as docs/hosts.md says. */
export async function withTypeCheck(project: Project): Promise<Project> {
  const config = JSON.parse(await project.read("tsconfig.json")) as object;
  const typeChecking = { ...config, "ts-node": { compiler: "ts-patch/compiler" } };
  await project.write({ "tsconfig.json": JSON.stringify(typeChecking) });
  return project;
}

/** Says under which lock it works: `A1 under LOCK_pay_A1`. */
export function orders(flag: string): string {
  return `import { currentLock } from "lockweave";

export class Orders {
  /** @redisLock businessFlag=${flag} keyName=orderNo */
  async pay(orderNo: string): Promise<string> {
    return orderNo + " under " + currentLock().key;
  }
}
`;
}

/** The same in the CommonJS that Node runs without a compiler. */
export function ordersAsScript(flag: string): string {
  return orders(flag)
    .replace("import { currentLock } from", "const { currentLock } = require(")
    .replace('"lockweave";', '"lockweave");')
    .replace("export class Orders", "exports.Orders = class Orders");
}

export function withoutTypes(code: string): string {
  return code.replaceAll(/: (?:string|Promise<\w+>)/g, "");
}
