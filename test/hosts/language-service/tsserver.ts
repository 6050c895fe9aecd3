import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { readFileSync } from "node:fs";
import type { Project } from "../project";

/** A position in the protocol, with both numbers starting at 1. */
export interface Place {
  readonly line: number;
  readonly offset: number;
}

/** A range of a file. */
export interface Range {
  readonly start: Place;
  readonly end: Place;
}

interface Message {
  readonly type: "response" | "event";
  readonly request_seq?: number;
  readonly success?: boolean;
  readonly message?: string;
  readonly body?: unknown;
}

/** TypeScript's server for editors, in its own process. */
export class TsServer {
  readonly #child: ChildProcess;
  readonly #project: Project;
  readonly #texts = new Map<string, string>();
  readonly #waiting = new Map<number, (message: Message) => void>();
  #seq = 0;
  #unread = Buffer.alloc(0);

  /** @param typescript the directory of the TypeScript package */
  constructor(project: Project, typescript = dirname(require.resolve("typescript/package.json"))) {
    this.#project = project;
    // The arguments with which VS Code starts the TypeScript of the workspace.
    const settings = ["--allowLocalPluginLoads", "--disableAutomaticTypingAcquisition"];
    const quiet = ["--suppressDiagnosticEvents", "--logVerbosity", "verbose", "--logFile", this.#log];
    this.#child = spawn(process.execPath, [join(typescript, "lib/tsserver.js"), ...settings, ...quiet], {
      cwd: project.dir,
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#child.stdout?.on("data", (chunk: Buffer) => this.#read(chunk));
  }

  get #log(): string {
    return this.#project.path("tsserver.log");
  }

  /** Returns the log of the server. */
  log(): string {
    return readFileSync(this.#log, "utf8");
  }

  /** Opens the file with this text, as an editor does with unsaved changes. */
  async open(file: string, text?: string): Promise<void> {
    const fileContent = text ?? (await this.#project.read(file));
    this.#texts.set(file, fileContent);
    await this.ask("updateOpen", { openFiles: [{ file: this.#project.path(file), fileContent }] });
  }

  /** Returns the position of the first occurrence, or of the `|` in the words if there is one. */
  at(file: string, words: string): Place {
    const text = this.#texts.get(file) ?? "";
    const cursor = Math.max(words.indexOf("|"), 0);
    const found = text.indexOf(words.replace("|", ""));
    if (found === -1) throw new Error(`${file} has no ${words}`);
    const lines = text.slice(0, found + cursor).split("\n");
    return { line: lines.length, offset: (lines.at(-1) ?? "").length + 1 };
  }

  /** Returns the text of the range. */
  textOf(file: string, { start, end }: Range): string {
    const lines = (this.#texts.get(file) ?? "").split("\n");
    const offset = (place: Place): number =>
      lines.slice(0, place.line - 1).reduce((sum, line) => sum + line.length + 1, 0) + place.offset - 1;
    return lines.join("\n").slice(offset(start), offset(end));
  }

  /** Returns the absolute path of the file. */
  path(file: string): string {
    return this.#project.path(file);
  }

  /** Sends a request. Returns the body of the response. */
  async ask<Body>(command: string, args: object): Promise<Body> {
    const seq = (this.#seq += 1);
    const answer = new Promise<Message>((resolve) => this.#waiting.set(seq, resolve));
    this.#child.stdin?.write(`${JSON.stringify({ seq, type: "request", command, arguments: args })}\n`);
    const { success, message, body } = await answer;
    if (success === false && message !== "No content available.") throw new Error(message);
    return body as Body;
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.stdin?.end();
    await ended;
  }

  /** Parses messages: `Content-Length: 12`, an empty line, and that many bytes. */
  #read(chunk: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, chunk]);
    for (;;) {
      const head = /^Content-Length: (\d+)\r\n\r\n/.exec(this.#unread.toString("latin1"));
      if (head === null) return;
      const end = head[0].length + Number(head[1]);
      if (this.#unread.length < end) return;
      const message = JSON.parse(this.#unread.toString("utf8", head[0].length, end)) as Message;
      this.#unread = this.#unread.subarray(end);
      if (message.type === "response" && message.request_seq !== undefined) {
        this.#waiting.get(message.request_seq)?.(message);
      }
    }
  }
}
