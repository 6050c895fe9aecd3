import { dirname } from "node:path";
import { installed } from "../../hosts/installed";
import { inMatrix } from "../../support/suites";
import { generatedPrisma } from "../../stores/postgres/prisma";
import { analyzed, found } from "./analyzed";

// Real libraries. Each file has the function `late`, whose lock is released before the commit, and functions that are right.

const TAG = "/** @redisLock businessFlag=stock keyName=id */";

/** A lock that gets a transaction, and a transaction inside a lock. */
const AROUND = (handle: string, transaction: (body: string) => string): string => `
async function late(id: string, tx: ${handle}): Promise<void> { void id; void tx; }
export async function wrong(): Promise<void> {
  ${transaction("await locked('a', tx);")}
}
${TAG}
async function locked(id: string, tx: ${handle}): Promise<void> { await late(id, tx); }
${TAG}
export async function right(id: string): Promise<void> {
  ${transaction("await late(id, tx);")}
}
${TAG}
async function alone(id: string): Promise<void> { void id; }
export async function apart(): Promise<void> {
  ${transaction("await late('a', tx); await alone('a');")}
}
`;

const PROGRAMS: Readonly<Record<string, string>> = {
  typeorm: `import { DataSource, type EntityManager } from "typeorm";
declare const source: DataSource;
${AROUND("EntityManager", (body) => `await source.transaction(async (tx) => { ${body} });`)}`,
  "typeorm-by-hand": `import { DataSource, type EntityManager } from "typeorm";
declare const source: DataSource;
${AROUND(
  "EntityManager",
  (body) => `const runner = source.createQueryRunner();
  await runner.startTransaction();
  try { const tx = runner.manager; ${body} await runner.commitTransaction(); } catch { await runner.rollbackTransaction(); }`,
)}`,
  "typeorm-transactional": `import { Propagation, Transactional, runInTransaction } from "typeorm-transactional";
export class Stock {
  ${TAG}
  @Transactional()
  async wrong(id: string): Promise<void> { void id; }
  ${TAG}
  async right(id: string): Promise<void> { await this.inner(id); }
  @Transactional({ propagation: Propagation.REQUIRES_NEW })
  async inner(id: string): Promise<void> { void id; }
  @Transactional()
  async around(id: string): Promise<void> { await this.right(id); }
  ${TAG}
  async plain(id: string): Promise<void> { void id; }
  async run(id: string): Promise<void> { await runInTransaction(async () => { await this.plain(id); }); }
}`,
  "nestjs-cls": `import { Propagation, Transactional, type TransactionHost } from "@nestjs-cls/transactional";
export class Stock {
  constructor(private readonly host: TransactionHost) {}
  @Transactional()
  ${TAG}
  async wrong(id: string): Promise<void> { void id; }
  ${TAG}
  async right(id: string): Promise<void> { await this.inner(id); }
  @Transactional(Propagation.RequiresNew)
  async inner(id: string): Promise<void> { void id; }
  @Transactional()
  async around(id: string): Promise<void> { await this.right(id); }
  ${TAG}
  async plain(id: string): Promise<void> { void id; }
  async run(id: string): Promise<void> { await this.host.withTransaction(async () => this.plain(id)); }
  async apart(id: string): Promise<void> { await this.host.withTransaction(Propagation.NotSupported, async () => this.plain(id)); }
}`,
  drizzle: `import { drizzle } from "drizzle-orm/node-postgres";
const db = drizzle("postgres://localhost/a");
type Tx = Parameters<Parameters<typeof db.transaction>[0]>[0];
${AROUND("Tx", (body) => `await db.transaction(async (tx) => { ${body} });`)}`,
  kysely: `import type { Kysely, Transaction } from "kysely";
declare const db: Kysely<{ a: { id: string } }>;
${AROUND("Transaction<{ a: { id: string } }>", (body) => `await db.transaction().setIsolationLevel("serializable").execute(async (tx) => { ${body} });`)}`,
  "kysely-by-hand": `import type { Kysely, Transaction } from "kysely";
declare const db: Kysely<{ a: { id: string } }>;
${AROUND("Transaction<{ a: { id: string } }>", (body) => `const tx = await db.startTransaction().execute(); ${body} await tx.commit().execute();`)}`,
  knex: `import knex, { type Knex } from "knex";
const db = knex({ client: "pg" });
${AROUND("Knex.Transaction", (body) => `await db.transaction(async (tx) => { ${body} });`)}`,
  "knex-by-hand": `import knex, { type Knex } from "knex";
const db = knex({ client: "pg" });
${AROUND("Knex.Transaction", (body) => `const tx = await db.transaction(); try { ${body} await tx.commit(); } catch { await tx.rollback(); }`)}`,
  sequelize: `import { Sequelize, type Transaction } from "sequelize";
const db = new Sequelize("postgres://localhost/a");
${AROUND("Transaction", (body) => `await db.transaction(async (tx) => { ${body} });`)}`,
  "sequelize-by-context": `import { Sequelize } from "sequelize";
const db = new Sequelize("postgres://localhost/a");
${TAG}
async function locked(id: string): Promise<void> { void id; }
export async function wrong(): Promise<void> { await db.transaction(async () => { await locked("a"); }); }`,
  "sequelize-by-hand": `import { Sequelize, type Transaction } from "sequelize";
const db = new Sequelize("postgres://localhost/a");
${AROUND("{ transaction: Transaction }", (body) => `const transaction = await db.transaction(); const tx = { transaction }; ${body} await transaction.commit();`)}`,
  "mikro-orm": `import { type EntityManager, Transactional } from "@mikro-orm/core";
export class Stock {
  constructor(private readonly em: EntityManager) {}
  ${TAG}
  @Transactional()
  async wrong(id: string): Promise<void> { void id; }
  ${TAG}
  async plain(id: string): Promise<void> { void id; }
  async run(id: string): Promise<void> { await this.em.transactional(async () => { await this.plain(id); }); }
}`,
  mongoose: `import mongoose from "mongoose";
${AROUND("mongoose.ClientSession", (body) => `await mongoose.connection.transaction(async (tx) => { ${body} });`)}`,
  "mongoose-session": `import mongoose from "mongoose";
${AROUND("mongoose.ClientSession", (body) => `const tx = await mongoose.startSession(); await tx.withTransaction(async () => { ${body} });`)}`,
  "mongoose-by-hand": `import mongoose from "mongoose";
${AROUND("mongoose.ClientSession", (body) => `const tx = await mongoose.startSession(); tx.startTransaction(); ${body} await tx.commitTransaction();`)}`,
  pg: `import { Pool, type PoolClient } from "pg";
const pool = new Pool();
${AROUND("PoolClient", (body) => `const tx = await pool.connect(); await tx.query("BEGIN"); try { ${body} await tx.query("COMMIT"); } catch { await tx.query("ROLLBACK"); }`)}`,
  "pg-wrapped": `import { Pool, type PoolClient } from "pg";
const pool = new Pool();
async function inTransaction<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const result = await work(client);
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  }
}
${AROUND("PoolClient", (body) => `await inTransaction(async (tx) => { ${body} });`)}`,
  postgres: `import postgres from "postgres";
const sql = postgres("postgres://localhost/a");
${AROUND("postgres.TransactionSql", (body) => `await sql.begin(async (tx) => { ${body} });`)}`,
};

/** What is reported in each program, if it is not the one call of `locked`. */
const REPORTED: Readonly<Record<string, readonly string[]>> = {
  "typeorm-transactional": ["@redisLock", "plain"],
  "nestjs-cls": ["@redisLock", "plain"],
  "mikro-orm": ["@redisLock", "plain"],
};

inMatrix(
  "a lock in a transaction of each library is reported, and a transaction in a lock is not",
  async (t) => {
    t.timeout(300_000);
    const modules = await installed("transaction-libraries");
    const files = Object.entries(PROGRAMS).map(([name, text]) => [`${name}.ts`, text] as const);
    const { findings } = analyzed(Object.fromEntries(files), { root: dirname(modules) });
    for (const name of Object.keys(PROGRAMS)) {
      const reported = findings
        .filter(({ file, problem }) => problem.code === "LW1509" && file.fileName.endsWith(`/${name}.ts`))
        .map(({ file, problem: { start, end } }) => file.text.slice(start, end));
      t.deepEqual(reported.toSorted(), REPORTED[name] ?? ["locked"], name);
    }
  },
);

inMatrix("a lock in a transaction of a generated Prisma client is reported", async (t) => {
  t.timeout(300_000);
  const { dir, remove } = await generatedPrisma();
  t.teardown(remove);
  const text = `import { PrismaClient, type Prisma } from "./client/index.js";
declare const prisma: PrismaClient;
${AROUND("Prisma.TransactionClient", (body) => `await prisma.$transaction(async (tx) => { ${body} });`)}`;
  t.deepEqual(found({ "program.ts": text }, { root: dir }), ["LW1509 locked"]);
});
