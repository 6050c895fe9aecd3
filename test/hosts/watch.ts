import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Project } from "./project";

const TSPC = [require.resolve("ts-patch/bin/tspc.js"), "--watch", "--preserveWatchOutput"];

/** `tspc --watch` on a project, or what speaks like it. */
export class Watch {
  readonly #child: ChildProcess;
  #unread = "";
  #onOutput = (): void => {};

  constructor(project: Project, command: readonly string[] = TSPC) {
    this.#child = spawn(process.execPath, command, {
      cwd: project.dir,
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#unread += text;
      this.#onOutput();
    });
  }

  /** What the compiler says about its next build, once it is done. */
  async build(): Promise<string> {
    const ending = /Watching for file changes\.\s*$/;
    while (!ending.test(this.#unread)) {
      await new Promise<void>((resolve) => {
        this.#onOutput = resolve;
      });
    }
    const output = this.#unread;
    this.#unread = "";
    return output;
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.kill();
    await ended;
  }
}
