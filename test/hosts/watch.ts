import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { deferred } from "../support/deferred";
import { TSPC, type Project } from "./project";

const TSPC_WATCH = [...TSPC, "--watch", "--preserveWatchOutput"];

/** For what takes a second or two on a machine that is not busy. */
const BUILT_WITHIN_MS = 120_000;

/** `tspc --watch` on a project, or what speaks like it. */
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
   * What the compiler says about its next build, once it is done.
   *
   * @throws where none is done in time: a compiler that waits for a change would wait for ever, and the test file with it
   */
  async build(): Promise<string> {
    const built = deferred();
    const isLate = setTimeout(
      () => built.reject(new Error(`It has built nothing, and said: ${this.#unread}`)),
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
