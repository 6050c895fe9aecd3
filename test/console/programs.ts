import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { COMPILER, PACKAGE, type Finished } from "../hosts/project";

const CLI = join(PACKAGE, "dist/transformer/cli/main.js");

/** The processes of a test on one Redis or one PostgreSQL: programs with locks, and commands that show them. */
export class Programs {
  readonly #store: { readonly redis: string } | { readonly postgres: string };
  readonly #environment: Readonly<Record<string, string>>;
  readonly #children = new Set<ChildProcess>();

  constructor(url: string) {
    const isPostgres = url.startsWith("postgres:");
    this.#store = isPostgres ? { postgres: url } : { redis: url };
    this.#environment = isPostgres
      ? { REDIS_URL: "", POSTGRES_URL: url }
      : { REDIS_URL: url, POSTGRES_URL: "" };
  }

  /** Runs a command until it exits. */
  async lockweave(args: readonly string[], env: Record<string, string> = {}): Promise<Finished> {
    const child = this.start(args, env);
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => void (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => void (stderr += text));
    const [code] = (await once(child, "close")) as [number | null];
    return { code, stdout, stderr };
  }

  /** Starts a command that runs until `end()`. */
  start(args: readonly string[], env: Record<string, string> = {}): ChildProcessWithoutNullStreams {
    const child = spawn(process.execPath, [...COMPILER, CLI, ...args], {
      env: { ...process.env, ...this.#environment, ...env },
    });
    this.#children.add(child);
    return child;
  }

  /** Starts a process that runs the body. In it, `take(site, flag, part)` acquires a lock like a tagged function, and never releases it. */
  async program(
    body: string,
    configuration = JSON.stringify({ ...this.#store, announce: true }),
  ): Promise<ChildProcess> {
    const script = `
      const { configure, withLock, obtain, lockKey, wholeKey, open, acquire, retryCheck, release } = require(${JSON.stringify(join(PACKAGE, "dist/runtime/index.js"))});
      configure({ woven: false, ...${configuration} });
      const take = async (site, businessFlag, part) => {
        const lock = open({ site, businessFlag, waitTime: "60s" }, part);
        while (!(await acquire(lock))) await retryCheck(lock);
      };
      const never = () => new Promise(() => {});
      (async () => { ${body} })().then(() => process.send("ready"));
      process.on("disconnect", () => process.exit());`;
    const child = spawn(process.execPath, ["--eval", script], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#children.add(child);
    await once(child, "message");
    return child;
  }

  async end(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    }
    this.#children.clear();
  }
}
