import { execFile, execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { chmod, chown, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { promisify } from "node:util";
import { threadId } from "node:worker_threads";
import { freePort, LAUNCHES, remove } from "./redis-server";

/** A PostgreSQL for one test file. It contains only the data of these tests. */
export interface PostgresServer {
  readonly port: number;
  /** The address of the database `postgres`, which exists. */
  readonly url: string;
  /** The folder of its socket and its data. */
  readonly dir: string;
  readonly pid: number;
  /** What it has logged. */
  readonly log: string;
  /** Returns the address of another database, another user, or both. */
  urlOf(parts: { readonly database?: string; readonly user?: string; readonly password?: string }): string;
  signal(signal: NodeJS.Signals): void;
  /** Ends the server without a shutdown, as a crash does, and starts it again with the same data. */
  crash(): Promise<void>;
  /** Stops the server, and resolves when it has exited. Its data remains until `stop`. */
  halt(): Promise<void>;
  /** Starts the server again after `halt`, with the same data. */
  resume(): Promise<void>;
  /** Stops the server, removes its data, and resolves when it has exited. */
  stop(): Promise<void>;
  /** Starts a standby of this server, which has a copy of its data and follows it. */
  startStandby(name: string, ...settings: readonly string[]): Promise<PostgresServer>;
  /** Makes this standby a primary. Resolves when it accepts writes. */
  promote(): Promise<void>;
}

const USER = "postgres";
const TEMPLATES = join(__dirname, "../../node_modules/.cache/postgres");
/** Debian keeps the programs of each version in a folder of its own, outside of the PATH. */
const DEBIAN = "/usr/lib/postgresql";
/** Settings that make the server small. `fsync` stays on, because a lock must survive a crash. */
const SMALL = ["shared_buffers=16MB", "max_connections=100"];
/** Without these, each write costs more, and a server cannot have standbys. */
const ALONE = ["max_wal_senders=0", "wal_level=minimal"];

/**
 * Runs the server, and a guard that kills it if the other end of descriptor 3 closes without a message. So no server
 * outlives this process, even if it is killed.
 */
const TIED_TO_US = '(read -r _ <&3 || kill -9 $$) & exec "$@" 3<&-';

/**
 * Starts an empty server on loopback.
 *
 * @param settings lines of postgresql.conf, such as `"max_connections=5"`
 */
export function startPostgres(...settings: readonly string[]): Promise<PostgresServer> {
  return startEmpty([...ALONE, ...settings]);
}

/** Starts an empty server that can have standbys: see {@link PostgresServer.startStandby}. */
export function startPrimary(...settings: readonly string[]): Promise<PostgresServer> {
  return startEmpty(settings);
}

async function startEmpty(settings: readonly string[]): Promise<PostgresServer> {
  const dir = await ownedDirectory("postgres-");
  const data = join(dir, "data");
  const template = templateOfData();
  if (existsSync(template)) {
    execFileSync("cp", ["-R", template, data]);
    if (isRoot()) execFileSync("chown", ["-R", USER, data]);
  } else {
    const words = ["--auth=trust", `--username=${USER}`, "--encoding=UTF8", "--locale=C"];
    runAsUser("initdb", "--no-sync", ...words, data);
    keepTemplate(data, template);
  }
  return await startIn(dir, settings);
}

/** Returns the path of an empty database, which each server copies, because `initdb` needs most of the time of a start. */
function templateOfData(): string {
  const version = execFileSync("initdb", ["--version"], { env: ENVIRONMENT, encoding: "utf8" });
  return join(TEMPLATES, version.trim().replaceAll(/\W+/g, "-"));
}

/** Copies the data in one step, because other processes may do the same. */
function keepTemplate(data: string, template: string): void {
  const unfinished = `${template}.${process.pid}.${threadId}`;
  mkdirSync(TEMPLATES, { recursive: true });
  execFileSync("cp", ["-R", data, unfinished]);
  try {
    renameSync(unfinished, template);
  } catch {
    rmSync(unfinished, { recursive: true }); // Another process was faster.
  }
}

async function startIn(dir: string, settings: readonly string[]): Promise<PostgresServer> {
  for (let launch = 1; launch <= LAUNCHES; launch += 1) {
    const port = await freePort();
    const process = new Server(port, dir, settings);
    if (await process.start()) return serverOf(process);
  }
  await remove(dir);
  throw new Error(`postgres failed to start ${LAUNCHES} times`);
}

function serverOf(process: Server): PostgresServer {
  const { port, dir } = process;
  const urlOf: PostgresServer["urlOf"] = ({ database = "postgres", user = USER, password = "" }) =>
    `postgres://${user}${password === "" ? "" : `:${password}`}@127.0.0.1:${port}/${database}`;
  const resume = async (): Promise<void> => {
    if (!(await process.start())) throw new Error(`postgres did not start again:\n${process.log}`);
  };
  return {
    port,
    dir,
    url: urlOf({}),
    urlOf,
    get pid() {
      return process.pid;
    },
    get log() {
      return process.log;
    },
    signal: (signal) => process.signal(signal),
    async crash() {
      await process.end();
      await resume();
    },
    halt: () => process.end(),
    resume,
    async stop() {
      await process.end();
      await remove(dir);
    },
    async startStandby(name, ...settings) {
      const own = await ownedDirectory("postgres-standby-");
      const from = `host=127.0.0.1 port=${port} user=${USER} application_name=${name}`;
      runAsUser("pg_basebackup", "--no-sync", "--checkpoint=fast", "-R", "-d", from, "-D", join(own, "data"));
      return await startIn(own, settings);
    },
    async promote() {
      await execFileAsUser("pg_ctl", "promote", "--wait", "-D", join(dir, "data"));
    },
  };
}

/** Sends a signal to a server and all its processes. */
export function signalAll({ pid }: PostgresServer, signal: NodeJS.Signals): void {
  const children = execFileSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" });
  for (const child of children.split("\n").map(Number)) {
    if (child > 0) sendTo(child, signal);
  }
  sendTo(pid, signal);
}

function sendTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // A process of one connection has just ended.
  }
}

class Server {
  readonly port: number;
  readonly dir: string;
  readonly #settings: readonly string[];
  #program: Program | undefined;

  constructor(port: number, dir: string, settings: readonly string[]) {
    this.port = port;
    this.dir = dir;
    this.#settings = settings;
  }

  get pid(): number {
    return this.#program?.child.pid ?? NaN; // Without a process, sending a signal throws.
  }

  get log(): string {
    return this.#program?.log ?? "";
  }

  /** Resolves to whether it started. It does not if another program took the port after the probe. */
  start(): Promise<boolean> {
    const settings = [
      `port=${this.port}`,
      "listen_addresses=127.0.0.1",
      `unix_socket_directories=${this.dir}`,
      ...SMALL,
      ...this.#settings,
    ];
    this.#program = startProgram(
      "postgres",
      "-D",
      join(this.dir, "data"),
      ...settings.flatMap((one) => ["-c", one]),
    );
    return this.#program.logs(/database system is ready to accept (?:read-only )?connections/);
  }

  signal(signal: NodeJS.Signals): void {
    this.#program?.child.kill(signal);
  }

  /** An immediate shutdown. It also ends all backends, and is like a crash for the data. */
  async end(): Promise<void> {
    await this.#program?.end("SIGQUIT");
  }
}

/** A program that runs as the user `postgres` if this process is root, because PostgreSQL and PgBouncer refuse to run as root. */
export interface Program {
  readonly child: ChildProcess;
  readonly log: string;
  /** Resolves to whether a line of its log fits before it exits. */
  logs(fits: RegExp): Promise<boolean>;
  end(signal: NodeJS.Signals): Promise<void>;
}

export function startProgram(name: string, ...args: readonly string[]): Program {
  const [program = name, ...rest] = asUser(name, ...args);
  const child = spawn("sh", ["-c", TIED_TO_US, name, program, ...rest], {
    env: ENVIRONMENT,
    stdio: ["ignore", "ignore", "pipe", "pipe"],
  });
  const stderr = child.stderr as Readable;
  const tie = child.stdio[3] as Writable;
  tie.on("error", () => {}); // It has exited, and `ended` resolves.
  let log = "";
  stderr.setEncoding("utf8").on("data", (text: string) => (log += text));
  const ended = once(child, "exit");
  return {
    child,
    get log() {
      return log;
    },
    async logs(fits) {
      const fitting = new Promise<true>((resolve) => {
        const look = (): void => {
          if (!fits.test(log)) return;
          stderr.off("data", look);
          resolve(true);
        };
        stderr.on("data", look);
        look();
      });
      return (await Promise.race([fitting, ended])) === true;
    },
    async end(signal) {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill("SIGCONT"); // A test may have stopped it.
        child.kill(signal);
      }
      await ended;
      tie.end("stopped in good order\n");
    },
  };
}

/** Runs a program of PostgreSQL until it ends. */
function runAsUser(name: string, ...args: readonly string[]): void {
  const [program = name, ...rest] = asUser(name, ...args);
  execFileSync(program, rest, { env: ENVIRONMENT, stdio: ["ignore", "ignore", "pipe"] });
}

/** The same without blocking this process, which may be under load. */
async function execFileAsUser(name: string, ...args: readonly string[]): Promise<void> {
  const [program = name, ...rest] = asUser(name, ...args);
  await promisify(execFile)(program, rest, { env: ENVIRONMENT });
}

function asUser(...command: readonly string[]): readonly string[] {
  return isRoot() ? ["setpriv", `--reuid=${USER}`, `--regid=${USER}`, "--init-groups", ...command] : command;
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** Creates a temporary directory that belongs to the user of the servers. */
export async function ownedDirectory(prefix: string): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), prefix));
  if (!isRoot()) return dir;
  const [uid, gid] = ["-u", "-g"].map((flag) =>
    Number(execFileSync("id", [flag, USER], { encoding: "utf8" })),
  );
  if (uid === undefined || gid === undefined) throw new Error(`there is no user ${USER}`);
  await chown(dir, uid, gid);
  await chmod(dir, 0o755);
  return dir;
}

/** Finds the programs also where Debian puts them, the newest version first. The language of the logs is English. */
const ENVIRONMENT = {
  PATH: [process.env["PATH"], ...debianFolders()].join(delimiter),
  LC_ALL: "C",
};

function debianFolders(): readonly string[] {
  try {
    const versions = readdirSync(DEBIAN).filter((name) => /^\d+$/.test(name));
    return versions
      .toSorted((one, other) => Number(other) - Number(one))
      .map((name) => join(DEBIAN, name, "bin"));
  } catch {
    return []; // Not Debian.
  }
}
