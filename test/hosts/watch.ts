import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { deferred } from "../support/deferred";
import { TSPC, type Project } from "./project";

const TSPC_WATCH = [...TSPC, "--watch", "--preserveWatchOutput"];

/** Generous: a build takes a second or two on an idle machine. */
const BUILT_WITHIN_MS = 120_000;

/** Runs `tspc --watch` or a command with the same output on a project. */
export class Watch {
  readonly #child: ChildProcess;
  #unread = "";
  #onOutput = (): void => {};

  constructor(project: Project, command: readonly string[] = TSPC_WATCH) {
    this.#child = spawn(process.execPath, command, {
      cwd: project.dir,
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#unread += text;
      this.#onOutput();
    });
  }

  /**
   * Waits for the next build. Returns the compiler's output.
   *
   * @throws if no build ends in time, because a compiler without a change to build would wait forever
   */
  async build(): Promise<string> {
    const built = deferred();
    const isLate = setTimeout(
      () => built.reject(new Error(`No build finished. Output: ${this.#unread}`)),
      BUILT_WITHIN_MS,
    );
    this.#onOutput = () => {
      if (/Watching for file changes\.\s*$/.test(this.#unread)) built.resolve();
    };
    this.#onOutput();
    await built.promise;
    clearTimeout(isLate);
    const output = this.#unread;
    this.#unread = "";
    return output;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill();
    await ended;
  }
}
