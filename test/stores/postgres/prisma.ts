import { execFile } from "node:child_process";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { installed } from "../../hosts/installed";

// Prisma generates its client from a schema, so it needs a folder of its own.

const SCHEMA = `generator client {
  provider = "prisma-client-js"
  output   = "./client"
}

datasource db {
  provider = "postgresql"
}

model Account {
  id      String @id
  balance Int
}
`;

/** A client of Prisma. */
interface PrismaClient {
  $transaction<T>(
    use: (tx: PrismaTransaction) => Promise<T>,
    options?: { readonly timeout: number },
  ): Promise<T>;
  $disconnect(): Promise<void>;
}

interface PrismaTransaction {
  $queryRawUnsafe(sql: string): Promise<unknown>;
  $executeRawUnsafe(sql: string): Promise<number>;
}

/** Generates a client into a new folder, as `client` beside its packages. */
export async function generatedPrisma(): Promise<{ readonly dir: string; remove(): Promise<void> }> {
  // The scripts of these packages would download programs that only `prisma migrate` needs, so they do not run.
  const modules = await installed("prisma-7");
  const dir = await mkdtemp(join(tmpdir(), "prisma-"));
  await symlink(modules, join(dir, "node_modules"));
  await writeFile(join(dir, "schema.prisma"), SCHEMA);
  const generate = [join(modules, "prisma/build/index.js"), "generate", "--schema", "schema.prisma"];
  // If it knows such a program, it downloads none. It does not run the program.
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: "1" };
  await promisify(execFile)(process.execPath, generate, { cwd: dir, env });
  return { dir, remove: () => rm(dir, { recursive: true }) };
}

/** Generates a client and connects it. `close` disconnects it, and removes what was generated. */
export async function openPrisma(url: string): Promise<{ prisma: PrismaClient; close(): Promise<void> }> {
  const { dir, remove } = await generatedPrisma();
  const load = createRequire(join(dir, "x.js"));
  const { PrismaClient: Client } = load("./client") as {
    PrismaClient: new (options: object) => PrismaClient;
  };
  const { PrismaPg } = load("@prisma/adapter-pg") as { PrismaPg: new (options: object) => object };
  const prisma = new Client({ adapter: new PrismaPg({ connectionString: url }) });
  return {
    prisma,
    async close() {
      await prisma.$disconnect();
      await remove();
    },
  };
}
