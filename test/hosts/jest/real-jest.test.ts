import { readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import test from "ava";
import { makeProject, PACKAGE, type Project } from "../project";
import { installed } from "../installed";
import { isMatrix } from "../register/nodes";

const PACKAGES = [
  "jest@30",
  "ts-jest@29",
  "babel-jest@30",
  "@babel/core@7",
  "@babel/preset-env@7",
  "@babel/preset-typescript@7",
  "@swc/core@1",
  "@swc/jest@0.2",
  "typescript@6.0.3",
];

const ORDERS = `interface Order { readonly no: string }
export class Orders {
  /** @redisLock businessFlag=pay keyName=order.no */
  async pay(order: Order): Promise<string> { return this.paid(order); }
  private async paid(order: Order): Promise<string> {
    if (order.no === "") throw new Error("no order");
    return order.no;
  }
}
export const fails = (): Promise<string> => new Orders()["paid"]({ no: "" });
`;

const BABEL = {
  presets: [["@babel/preset-env", { targets: { node: "current" } }], "@babel/preset-typescript"],
};

async function withJest(transformer: unknown): Promise<Project> {
  const modules = await installed(PACKAGES, "jest-30");
  const [, unitTest = ""] =
    /^```ts\n(\/\/ src\/orders\.test\.ts\n.*?)^```/ms.exec(
      await readFile(join(PACKAGE, "docs/hosts.md"), "utf8"),
    ) ?? [];
  const project = await makeProject(
    {
      "package.json": "{}",
      "jest.config.json": JSON.stringify({
        cacheDirectory: "./cache",
        transform: { "\\.ts$": ["lockweave/jest", { transformer }] },
      }),
      "src/orders.ts": ORDERS,
      "src/orders.test.ts": `${unitTest}
test("stack traces show the file on disk", async () => {
  const { fails } = await import("./orders");
  const error = await fails().catch((thrown: Error) => thrown);
  expect((error as Error).stack).toContain("src/orders.ts:6:32");
});
`,
    },
    { module: "commonjs", esModuleInterop: true },
  );
  for (const name of ["jest", "ts-jest", "babel-jest", "@babel", "@swc", "@jest"]) {
    await symlink(join(modules, name), project.path(`node_modules/${name}`));
  }
  return project;
}

(isMatrix ? test.serial : test.skip)(
  "Jest compiles with each of its transformers what is woven",
  async (t) => {
    for (const transformer of ["ts-jest", "@swc/jest", ["babel-jest", BABEL]]) {
      const project = await withJest(transformer);
      const jest = [project.path("node_modules/jest/bin/jest.js"), "--coverage"];
      const { code, stdout, stderr } = await project.run(...jest);
      t.is(code, 0, stderr);
      t.regex(stdout, /orders\.ts +\| +100 \| +\d+(?:\.\d+)? \| +100 \| +100 /, stderr);
      await project.write({ "src/orders.ts": ORDERS.replace("keyName=order.no", "keyName=ordr.no") });
      const wrong = await project.run(...jest);
      t.is(wrong.code, 1);
      t.true(wrong.stderr.includes("src/orders.ts(3,43): error LW1202"), wrong.stderr);
    }
  },
);
