import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { makeProject, PACKAGE, type Files, type Project, type Settings } from "../project";

/** The arguments of Node for each host, as in the docs. */
export const HOSTS = {
  Node: ["--import", "lockweave/register"],
  tsx: ["--import", "tsx", "--import", "lockweave/register"],
  "ts-node": ["--require", "ts-node/register/transpile-only", "--require", "lockweave/register"],
  "ts-node with type check": ["--require", "ts-node/register"],
  "ts-node for ES modules": ["--import", "./ts-node-esm.mjs", "--import", "lockweave/register"],
} as const;

/** Creates a project with the hosts installed. */
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

/** Configures ts-node with type checking as in docs/compilers.md. */
export async function withTypeCheck(project: Project): Promise<Project> {
  const config = JSON.parse(await project.read("tsconfig.json")) as object;
  const typeChecking = { ...config, "ts-node": { compiler: "ts-patch/compiler" } };
  await project.write({ "tsconfig.json": JSON.stringify(typeChecking) });
  return project;
}

/** Returns the source of a class whose method returns its lock, for example `A1 under LOCK_pay_A1`. */
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

/** Returns the same class as CommonJS, still with types. */
export function ordersAsScript(flag: string): string {
  return orders(flag)
    .replace("import { currentLock } from", "const { currentLock } = require(")
    .replace('"lockweave";', '"lockweave");')
    .replace("export class Orders", "exports.Orders = class Orders");
}

export function withoutTypes(code: string): string {
  return code.replaceAll(/: (?:string|Promise<\w+>)/g, "");
}
