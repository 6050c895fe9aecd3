import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ownedDirectory, startProgram, type PostgresServer } from "./postgres-server";
import { freePort, LAUNCHES, remove } from "./redis-server";

/** A PgBouncer in front of a server, in transaction mode: each transaction may get another connection to the server. */
export interface PgBouncer {
  readonly port: number;
  /** The address of the database `postgres` through it. */
  readonly url: string;
  /** Returns the address of another database. */
  urlOf(database: string): string;
  /** Kills it, which breaks all its connections, and starts it again at the same port. */
  restart(): Promise<void>;
  /** Stops it, and resolves when it has exited. The server continues. */
  stop(): Promise<void>;
}

/** @param settings further lines of its configuration, such as `"default_pool_size = 1"` */
export async function startPgBouncer(
  server: Pick<PostgresServer, "port">,
  ...settings: readonly string[]
): Promise<PgBouncer> {
  const dir = await ownedDirectory("pgbouncer-");
  const [file, users] = [join(dir, "pgbouncer.ini"), join(dir, "users.txt")];
  await writeFile(users, '"postgres" ""\n');
  for (let launch = 1; launch <= LAUNCHES; launch += 1) {
    const port = await freePort();
    await writeFile(file, [configuration(port, server.port, users), ...settings, ""].join("\n"));
    let program = startProgram("pgbouncer", file);
    if (!(await program.logs(/process up/))) continue;
    const urlOf = (database: string): string => `postgres://postgres@127.0.0.1:${port}/${database}`;
    return {
      port,
      url: urlOf("postgres"),
      urlOf,
      async restart() {
        await program.end("SIGKILL");
        program = startProgram("pgbouncer", file);
        if (!(await program.logs(/process up/)))
          throw new Error(`pgbouncer did not start again: ${program.log}`);
      },
      async stop() {
        await program.end("SIGKILL");
        await remove(dir);
      },
    };
  }
  await remove(dir);
  throw new Error(`pgbouncer failed to start ${LAUNCHES} times`);
}

/** Few connections to the server, so that the transactions of one client really alternate between them. */
function configuration(port: number, serverPort: number, users: string): string {
  return `[databases]
* = host=127.0.0.1 port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
pool_mode = transaction
default_pool_size = 5
max_client_conn = 500
server_round_robin = 1
`;
}
