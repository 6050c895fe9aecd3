import test from "ava";
import { lockStoreOf } from "../../transformer/cli/init/choose-store";
import { planFor } from "../../transformer/cli/init/init";
import type { LockStore, StoreName } from "../../transformer/cli/init/lock-store";
import { Project } from "../../transformer/cli/init/project";
import { makeProject, type Files } from "../hosts/project";

// The store that `lockweave init` chooses for a project, and the files that depend on it.

async function projectOf(dependencies: object, files: Files = {}, manifest: object = {}): Promise<Project> {
  const text = JSON.stringify({ type: "module", ...manifest, dependencies });
  return new Project((await makeProject({ ...files, "package.json": text })).dir);
}

async function storeOf(dependencies: object, files: Files = {}, chosen?: StoreName): Promise<LockStore> {
  return lockStoreOf(await projectOf(dependencies, files), chosen);
}

const COMMAND = "npx lockweave postgres --apply postgres://localhost/database";

for (const name of ["pg", "postgres"]) {
  test(`with only ${name} in package.json, init puts the locks in PostgreSQL and installs nothing for Redis`, async (t) => {
    const project = await projectOf({ [name]: "*" });
    const { draft, lock } = planFor(project);
    t.deepEqual([...draft.dependencies, ...draft.devDependencies], []);
    t.is(draft.store.server, "PostgreSQL");
    t.deepEqual(draft.store.found, [`${name}: \`${name}\` in package.json`]);
    t.deepEqual(
      draft.store.steps.map(({ command }) => command),
      [COMMAND, "npx lockweave postgres"],
    );
    t.is(draft.store.proposed.argument, '{ postgres: "postgres://localhost/database" }');
    t.true(lock.text.includes('configure({ postgres: "postgres://localhost/database" }).'));
  });
}

const CONFIGURE = 'configure({ postgres: process.env.POSTGRES_URL ?? "postgres://localhost/database" });';

const FRAMEWORKS = [
  [
    "SvelteKit",
    "@sveltejs/kit",
    { "vite.config.ts": "export default { plugins: [] };\n" },
    "src/hooks.server.ts",
  ],
  ["Nuxt", "nuxt", { "nuxt.config.ts": "export default {};\n" }, "server/plugins/lockweave.ts"],
  ["Astro", "astro", { "astro.config.mjs": "export default { adapter: node() };\n" }, "src/middleware.ts"],
  ["Next.js", "next", {}, "instrumentation.ts"],
] as const;

for (const [framework, dependency, files, startup] of FRAMEWORKS) {
  test(`the startup file of ${framework} configures the store that init decided on`, async (t) => {
    const textWith = async (client: string): Promise<string> => {
      const project = await projectOf({ [dependency]: "*", [client]: "*" }, files);
      return planFor(project).draft.text(startup) ?? "";
    };
    const text = await textWith("pg");
    t.true(text.includes(CONFIGURE), text);
    t.notRegex(text, /redis/i);
    const redis = 'configure({ redis: process.env.REDIS_URL ?? "redis://localhost:6379" });';
    t.is(await textWith("ioredis"), text.replace(CONFIGURE, redis));
  });
}

const URL = '{ redis: "redis://localhost:6379" }';
const ALSO_URL = `A URL works, too: \`configure(${URL})\`.`;
const NO_URL = "A URL needs ioredis or redis.";

for (const [what, dependencies, text, found, argument, about] of [
  [
    "a client of ioredis",
    { ioredis: "*", redis: "*" },
    'import IORedis from "ioredis";\nexport default new IORedis();\n',
    "ioredis: src/redis.ts:2 creates a client",
    "{ redis: client }",
    `\`client\` is the one that src/redis.ts:2 creates. ${ALSO_URL}`,
  ],
  [
    "a client of node-redis",
    { redis: "^6.0.0" },
    'import { createClient } from "redis";\n\nexport const client = createClient();\n',
    "node-redis: src/redis.ts:3 creates a client",
    "{ redis: client }",
    `\`client\` is the one that src/redis.ts:3 creates. ${ALSO_URL}`,
  ],
  [
    "a client of node-redis in a project that also declares ioredis",
    { ioredis: "*", redis: "*" },
    'import { createSentinel } from "redis";\nexport const client = createSentinel(options);\n',
    "node-redis: src/redis.ts:2 creates a client",
    "{ redis: client }",
    `\`client\` is the one that src/redis.ts:2 creates. ${ALSO_URL}`,
  ],
  [
    "node-redis in package.json, and no function of another package",
    { redis: "^6.0.0" },
    'import { createClient } from "other";\nexport const client = createClient();\n',
    "node-redis: `redis` in package.json",
    URL,
    "",
  ],
  [
    "a client of iovalkey",
    { iovalkey: "*" },
    'import Valkey from "iovalkey";\nexport const client = new Valkey(6379);\n',
    "iovalkey: src/redis.ts:2 creates a client",
    "{ redis: client }",
    `\`client\` is the one that src/redis.ts:2 creates. ${NO_URL}`,
  ],
  [
    "iovalkey in package.json",
    { iovalkey: "*" },
    "",
    "iovalkey: `iovalkey` in package.json",
    "{ redis: client }",
    `\`client\` is your client of iovalkey. ${NO_URL}`,
  ],
  [
    "a client of Valkey GLIDE",
    { "@valkey/valkey-glide": "*" },
    'import { GlideClusterClient } from "@valkey/valkey-glide";\nexport const client = await GlideClusterClient.createClient(config);\n',
    "Valkey GLIDE: src/redis.ts:2 creates a client",
    "{ redis: { glide: client, config } }",
    `\`client\` is the one that src/redis.ts:2 creates. \`config\` is what its \`createClient()\` got. ${NO_URL}`,
  ],
  [
    "Bun's RedisClient",
    {},
    'import { RedisClient } from "bun";\n\nexport const client = new RedisClient(url, options);\n',
    "Bun's RedisClient: src/redis.ts:3 creates a client",
    "{ redis: client }",
    `\`client\` is the one that src/redis.ts:3 creates. Give it a large \`maxRetries\`. By default, it stops reconnecting after about 30 seconds. ${NO_URL}`,
  ],
  [
    "the client that Bun exports",
    {},
    'import { redis, serve } from "bun";\nserve({ fetch: async () => new Response(await redis.get("visits")) });\n',
    "Bun's redis: src/redis.ts:1 imports a client",
    "{ redis }",
    `\`redis\` is the one that src/redis.ts:1 imports. It stops reconnecting after about 30 seconds. A \`new RedisClient()\` with a large \`maxRetries\` does not. ${NO_URL}`,
  ],
] as const) {
  test(`init finds ${what}, proposes to use it, and installs no other client`, async (t) => {
    const project = await projectOf(dependencies, { "src/redis.ts": text });
    const { draft, lock } = planFor(project);
    t.is(draft.store.server, "Redis");
    t.deepEqual(draft.store.found, [found]);
    t.deepEqual(draft.store.proposed, { argument, about: about === "" ? "" : ` ${about}` });
    t.deepEqual([...draft.dependencies], []);
    t.true(lock.text.includes(`configure(${about.endsWith(NO_URL) ? argument : URL}).`), lock.text);
  });
}

test("init installs ioredis in a project of Bun that creates no client", async (t) => {
  for (const text of ['import { serve } from "bun";\n', 'import type { RedisClient } from "bun";\n']) {
    const project = await projectOf(
      {},
      { "bun.lock": "", "src/main.ts": text },
      { devDependencies: { bun: "*" } },
    );
    const { draft } = planFor(project);
    t.deepEqual(draft.store.found, []);
    t.deepEqual([...draft.dependencies], ["ioredis"]);
  }
});

test("Bun's RedisClient counts as Redis in a project that also has PostgreSQL", async (t) => {
  const files = {
    "src/redis.ts": 'import { RedisClient } from "bun";\nexport const client = new RedisClient();\n',
  };
  t.is((await storeOf({ pg: "*" }, files)).server, "Redis");
});

for (const [framework, dependency, files, startup] of FRAMEWORKS) {
  test(`init leaves the startup file of ${framework} to a user whose client connects to no URL`, async (t) => {
    const project = await projectOf({ [dependency]: "*", iovalkey: "*" }, files);
    const { draft } = planFor(project);
    t.is(draft.text(startup), undefined);
    t.deepEqual([...draft.dependencies], []);
    t.is(draft.store.proposed.argument, "{ redis: client }");
  });
}

test("init shows the lines for PostgreSQL to write in an instrumentation file that exists", async (t) => {
  const project = await projectOf(
    { next: "*", pg: "*" },
    { "instrumentation.ts": "export function register() {}\n" },
  );
  const { lines } = planFor(project).draft.byHand.find(({ file }) => file === "instrumentation.ts") ?? {};
  t.true(lines?.includes(`  ${CONFIGURE}`), String(lines));
});

test("init names PostgreSQL clients if Vite builds for browsers", async (t) => {
  const project = await projectOf(
    { pg: "*" },
    { "vite.config.ts": "export default {};\n" },
    { scripts: { build: "vite build" } },
  );
  const { draft, found, lock } = planFor(project);
  const [step] = found.map(([host]) => host.next(project, draft, lock.file));
  t.regex(step?.about ?? "", /for browsers, where PostgreSQL clients cannot run/);
});

for (const [what, dependency, file, found, argument] of [
  [
    "a Pool of pg",
    "pg",
    'import { Pool } from "pg";\n\nexport const pool = new Pool();\n',
    "pg: src/db.ts:3 creates a Pool",
    "{ postgres: pool }",
  ],
  [
    "a Pool of the default export of pg",
    "pg",
    "const pg = require('pg');\nmodule.exports = new pg.Pool({ max: 5 });\n",
    "pg: src/db.ts:2 creates a Pool",
    "{ postgres: pool }",
  ],
  [
    "a Client of pg, which configure() does not accept",
    "pg",
    'import { Client } from "pg";\nexport const client = new Client();\n',
    "pg: src/db.ts:2 creates a Client, which Lockweave leaves alone",
    '{ postgres: "postgres://localhost/database" }',
  ],
  [
    "a client of postgres.js",
    "postgres",
    'import postgres from "postgres";\nexport const sql = postgres(url);\n',
    "postgres: src/db.ts:2 creates a client",
    "{ postgres: sql }",
  ],
  [
    "a Pool of another package",
    "pg",
    'import { Pool } from "generic-pool";\nexport const pool = new Pool();\n',
    "pg: `pg` in package.json",
    '{ postgres: "postgres://localhost/database" }',
  ],
] as const) {
  test(`init finds ${what}`, async (t) => {
    const store = await storeOf({ [dependency]: "*" }, { "src/db.ts": file });
    t.deepEqual(store.found, [found]);
    t.is(store.proposed.argument, argument);
  });
}

for (const client of ["ioredis", "redis", "iovalkey", "@valkey/valkey-glide"]) {
  test(`with ${client} and pg, the locks go to Redis, and init says how to choose PostgreSQL`, async (t) => {
    const { server, found, steps } = await storeOf({ pg: "*", [client]: "*" });
    t.is(server, "Redis");
    t.deepEqual(steps, []);
    t.is(
      found.at(-1),
      "PostgreSQL: `pg` in package.json. The locks go to Redis. For locks in PostgreSQL, run `npx lockweave init --store postgres`",
    );
  });
}

test("`--store postgres` puts the locks in PostgreSQL in a project with Redis, and names Redis", async (t) => {
  const { server, found } = await storeOf({ ioredis: "*", postgres: "*" }, {}, "postgres");
  t.is(server, "PostgreSQL");
  t.deepEqual(found, [
    "postgres: `postgres` in package.json",
    "Redis: `ioredis` in package.json. The locks go to PostgreSQL. For locks in Redis, run `npx lockweave init --store redis`",
  ]);
});

test("`--store` installs a client if package.json has none for that store", async (t) => {
  const installs = async (dependencies: object, chosen?: StoreName): Promise<readonly string[]> => [
    ...planFor(await projectOf(dependencies), chosen).draft.dependencies,
  ];
  t.deepEqual(await installs({}), ["ioredis"]);
  t.deepEqual(await installs({}, "postgres"), ["pg"]);
  t.deepEqual(await installs({ ioredis: "*" }, "postgres"), ["pg"]);
  t.deepEqual(await installs({ postgres: "*" }, "postgres"), []);
  t.deepEqual(await installs({ pg: "*" }, "redis"), ["ioredis"]);
});

test("init keeps the store that the project already configures, unless `--store` names another one", async (t) => {
  const both = { ioredis: "*", pg: "*" };
  const calling = (argument: string): Files => ({
    "src/locks.ts": `import { configure } from "lockweave";\nconfigure(${argument});\n`,
  });
  t.is((await storeOf(both, calling("{ postgres: pool }"))).server, "PostgreSQL");
  t.is((await storeOf(both, calling("{\n  postgres,\n  announce: true }"))).server, "PostgreSQL");
  t.is((await storeOf(both, calling("{ redis }"))).server, "Redis");
  t.is((await storeOf(both, calling("options"))).server, "Redis");
  t.is((await storeOf({ pg: "*" }, calling("{ redis }"))).server, "Redis");
  t.is((await storeOf(both, calling("{ postgres: pool }"), "redis")).server, "Redis");
});

test("init leaves the upgrade of a PostgreSQL client that is too old to the user", async (t) => {
  const byHand = async (dependencies: object): Promise<readonly string[]> => {
    const { draft } = planFor(await projectOf(dependencies));
    return draft.byHand.map(({ why, lines }) => `${why} ${lines.join()}`);
  };
  t.deepEqual(await byHand({ pg: "8.10.0" }), [
    "Lockweave needs pg 8.11 or later, but this project has 8.10.0: npm install pg@latest",
  ]);
  t.deepEqual(await byHand({ postgres: "~2.0.0" }), [
    "Lockweave needs postgres 3.4 or later, but this project has ~2.0.0: npm install postgres@latest",
  ]);
  for (const dependencies of [{ pg: "^8" }, { pg: "^8.11.0" }, { postgres: "^3.4" }, { pg: "9.0.0" }]) {
    t.deepEqual(await byHand(dependencies), [], JSON.stringify(dependencies));
  }
  t.deepEqual(await byHand({ pg: "7.0.0", postgres: "3.4.9" }), []);
});
