import { symlink } from "node:fs/promises";
import { join } from "node:path";
import type { ExecutionContext } from "ava";
import { PACKAGE } from "../hosts/project";
import { startPostgres } from "../support/postgres-server";
import { inMatrixSerially, outsideMatrixSerially } from "../support/suites";
import { makeConsumer } from "./consumer";

// Projects with only PostgreSQL, and with one of its client libraries or none.

const STRICT = { exactOptionalPropertyTypes: true, skipLibCheck: false } as const;
const CLI = "node_modules/lockweave/dist/transformer/cli/main.js";

const ORDER = `/** @redisLock businessFlag=payOrder keyName=orderNo */
export async function pay(orderNo: string, body: () => string): Promise<string> {
  return \`\${orderNo} \${body()}\`;
}
`;

/** Applies the SQL, holds a lock by the client, and then one by the URL, in a project with these packages of ours. */
async function runsWith(
  t: ExecutionContext,
  packages: readonly string[],
  client: string,
  types = "",
): Promise<void> {
  const server = await startPostgres();
  t.teardown(() => server.stop());
  const project = await makeConsumer(
    {
      "src/order.ts": ORDER,
      "src/main.ts": `${client}
import { configure, shutdown, type PostgresTarget } from "lockweave";
import { pay } from "./order.js";

const url = process.argv[2] ?? "";
const client = create(url);
export const targets: PostgresTarget[] = [url, client, { url, schema: "locks" }, { client, listenUrl: url, connections: 3 }];
${types}
for (const postgres of [client, url]) {
  configure({ postgres });
  console.log(await pay("A1", () => "is paid"));
  await shutdown();
}
await client.end();
`,
    },
    STRICT,
  );
  for (const name of packages)
    await symlink(join(PACKAGE, "node_modules", name), project.path(`node_modules/${name}`));
  t.like(await project.tspc(), { code: 0, stdout: "" });
  t.like(await project.run(CLI, "postgres", "--apply", server.url), {
    code: 0,
    stdout: "The schema lockweave is up to date.\n",
  });
  t.like(await project.run("out/main.js", server.url), {
    code: 0,
    stdout: "A1 is paid\nA1 is paid\n",
    stderr: "",
  });
  t.like(await project.run(CLI, "inspect", "LOCK_payOrder_A1", "--postgres", server.url), {
    code: 0,
    stdout: "LOCK_payOrder_A1 is free, and nobody waits for it.\n",
  });
}

outsideMatrixSerially("a project with only pg holds locks, and its types accept a Pool", async (t) => {
  await runsWith(
    t,
    ["pg", "@types/pg", "pg-types", "pg-protocol"],
    `import { Client, Pool, type PoolClient } from "pg";
const create = (connectionString: string) => new Pool({ connectionString });`,
    `// @ts-expect-error A client has only one connection.
export const single: PostgresTarget = new Client();
// @ts-expect-error A client of a pool has only one connection.
export const pooled = (one: PoolClient): PostgresTarget => one;`,
  );
});

inMatrixSerially("a project with only postgres.js holds locks, and its types accept a client", async (t) => {
  await runsWith(
    t,
    ["postgres"],
    `import postgres from "postgres";
const create = (url: string) => postgres(url, { types: { bigint: postgres.BigInt } });`,
    `// @ts-expect-error A transaction has only one connection.
export const inTransaction = (one: postgres.TransactionSql): PostgresTarget => one;`,
  );
});

outsideMatrixSerially(
  "a project without a client library gets an error that says what to install",
  async (t) => {
    const project = await makeConsumer(
      {
        "src/main.ts": `import { configure } from "lockweave";
configure({ postgres: "postgres://localhost", woven: false });
`,
      },
      STRICT,
    );
    t.like(await project.tspc(), { code: 0, stdout: "" });
    const commands = [["out/main.js"], [CLI, "top", "--postgres", "postgres://localhost"]];
    for (const [program = "", ...args] of commands)
      t.regex(
        (await project.run(program, ...args)).stderr,
        /A PostgreSQL URL needs pg 8\.11 or later, or postgres\.js 3\.4 or later \(the package `postgres`\)\. Fix: npm install pg, or npm install postgres/,
      );
  },
);
