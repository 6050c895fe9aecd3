import { execFileSync } from "node:child_process";
import { closeSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { startPrimary, type PostgresServer } from "../test/support/postgres-server";
import { quartiles } from "./quantiles";

/**
 * PostgreSQL's own defaults, and the extension that counts statements. Only the statements of clients count,
 * and not those inside functions. The server has no other work, and its data is in a temporary folder.
 */
const SETTINGS = [
  "shared_buffers=128MB",
  "max_connections=200",
  "shared_preload_libraries=pg_stat_statements",
  "pg_stat_statements.track=top",
];

/** A server for a benchmark. */
export interface BenchServer {
  readonly port: number;
  readonly version: string;
  /** Runs one statement in a database. */
  query(database: string, text: string, values?: readonly unknown[]): Promise<readonly Row[]>;
  /** Returns how many statements the clients of a database have sent since the last call. */
  statements(database: string): Promise<number>;
  stop(): Promise<void>;
}

export type Row = Readonly<Record<string, string | number | null>>;

/** The database in which the server counts. */
const ADMIN = "postgres";

export async function startBenchServer(...settings: readonly string[]): Promise<BenchServer> {
  const server = await startPrimary(...SETTINGS, ...settings);
  const clients = new Map<string, Promise<Client>>();
  const clientOf = (database: string): Promise<Client> => {
    const known = clients.get(database) ?? connect(server, database);
    clients.set(database, known);
    return known;
  };
  const query: BenchServer["query"] = async (database, text, values = []) => {
    const client = await clientOf(database);
    return (await client.query<Row>(text, [...values])).rows;
  };
  await query(ADMIN, "CREATE EXTENSION pg_stat_statements");
  const [about] = await query(ADMIN, "SHOW server_version");
  return {
    port: server.port,
    version: String(about?.["server_version"]),
    query,
    async statements(database) {
      const [counted] = await query(
        ADMIN,
        `SELECT coalesce(sum(s.calls), 0) AS calls FROM pg_stat_statements s
        JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = $1`,
        [database],
      );
      await query(ADMIN, "SELECT pg_stat_statements_reset()");
      return Number(counted?.["calls"]);
    },
    async stop() {
      for (const client of clients.values()) await (await client).end();
      await server.stop();
    },
  };
}

async function connect(server: PostgresServer, database: string): Promise<Client> {
  const client = new Client({ connectionString: server.urlOf({ database }) });
  client.on("error", () => {}); // The server stops.
  await client.connect();
  return client;
}

/** The size of a page of the write-ahead log. */
const PAGE = Buffer.alloc(8_192);
const WRITES = 200;

/** Describes the disk of the temporary folder: its file system, and how long it takes to make one page durable. */
export function describeDisk(): string {
  const folder = mkdtempSync(join(tmpdir(), "disk-"));
  const file = openSync(join(folder, "pages"), "w");
  try {
    const times = Array.from({ length: WRITES }, (_, page) => {
      const startedAt = performance.now();
      writeSync(file, PAGE, 0, PAGE.length, page * PAGE.length);
      fdatasyncSync(file);
      return performance.now() - startedAt;
    });
    const { median, high } = quartiles(times);
    return `${fileSystemOf(folder)}; a page is durable after ${median.toFixed(2)} ms (upper quartile ${high.toFixed(2)} ms)`;
  } finally {
    closeSync(file);
    rmSync(folder, { recursive: true });
  }
}

function fileSystemOf(folder: string): string {
  const [, line = ""] = execFileSync("df", ["-PT", folder], { encoding: "utf8" }).split("\n");
  const [device = "unknown", type = "unknown"] = line.split(/\s+/);
  const kind = rotates(device);
  return `${type} on ${device}${kind === undefined ? "" : ` (${kind})`}`;
}

/** Linux says whether a disk rotates. A virtual disk may say anything. */
function rotates(device: string): string | undefined {
  const name = device.replace("/dev/", "").replace(/p?\d+$/, "");
  try {
    return readFileSync(`/sys/block/${name}/queue/rotational`, "utf8").trim() === "0"
      ? "not rotating"
      : "rotating";
  } catch {
    return undefined; // No disk, or not Linux.
  }
}
