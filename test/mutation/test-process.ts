import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { asEnvironment, type Settings } from "./settings";
import type { Report, Task } from "./worker";

/** The outcome of a run. `what` describes the first failure. */
export type Outcome =
  | { readonly kind: "passed" }
  | { readonly kind: "failed"; readonly title: string }
  | { readonly kind: "broken"; readonly what: string }
  | { readonly kind: "timed out" };

/** The time to wait for the rest of a failed run. */
const GRACE_MS = 200;
const RUNS = 60;
const ATTEMPTS = 3;

/** Runs tests in a process. Replaces it after a failure that could affect the next run. */
export class TestProcess {
  readonly #settings: Settings;
  #current: ChildProcess;
  #spare: ChildProcess | undefined;
  #runs = 0;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.#current = this.#start();
  }

  /** @param onReport called when the file is loaded, and then for each test that has ended */
  async run(task: Task, limitMs: number, onReport: (report: Report) => void = () => {}): Promise<Outcome> {
    const child = await this.#ready();
    let outcome: Outcome | undefined;
    const isClean = await new Promise<boolean>((resolve) => {
      const giveUp = setTimeout(() => {
        outcome ??= { kind: "timed out" };
        resolve(false);
      }, limitMs);
      const settle = (clean: boolean): void => {
        clearTimeout(giveUp);
        child.off("message", listen).off("exit", onExit);
        resolve(clean);
      };
      const fail = (failure: Outcome): void => {
        outcome ??= failure;
        if (task.runsAll !== true) setTimeout(settle, GRACE_MS, false).unref();
      };
      const onExit = (): void => {
        outcome ??= { kind: "broken", what: "the process ended" };
        settle(false);
      };
      const listen = (report: Report): void => {
        onReport(report);
        if (report.type === "done") settle(report.isClean);
        else if (report.type === "broken") fail({ kind: "broken", what: report.what });
        else if (report.type === "tested" && !report.passed) fail({ kind: "failed", title: report.title });
      };
      child.on("message", listen).on("exit", onExit);
      child.send(task);
    });
    this.#runs += 1;
    if (!isClean || this.#runs === RUNS) this.#replace();
    return outcome ?? { kind: "passed" };
  }

  close(): void {
    end(this.#current);
    if (this.#spare !== undefined) end(this.#spare);
  }

  /** Returns a process that is ready. The spare one may have crashed in the meantime, because of what a test left behind. */
  async #ready(): Promise<ChildProcess> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const child = this.#current;
      this.#spare ??= this.#start();
      await readiness.get(child);
      if (child.connected) return child;
      this.#replace();
    }
    throw new Error("The processes that run tests exit before they run a test");
  }

  #replace(): void {
    end(this.#current);
    this.#current = this.#spare ?? this.#start();
    this.#spare = undefined;
    this.#runs = 0;
  }

  #start(): ChildProcess {
    const worker = join(this.#settings.mirror, "test/mutation/worker.js");
    const hook = join(this.#settings.mirror, "test/mutation/hook.js");
    const child = fork(worker, {
      cwd: this.#settings.root,
      detached: true, // In its own process group, so that its children end with it.
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      execArgv: [],
      env: {
        ...process.env,
        CI: "1",
        NODE_OPTIONS: `--require ${JSON.stringify(hook)}`,
        ...asEnvironment(this.#settings),
      },
    });
    readiness.set(child, Promise.race([once(child, "message"), once(child, "exit")]));
    return child;
  }
}

const readiness = new WeakMap<ChildProcess, Promise<unknown>>();

function end(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  process.kill(-child.pid, "SIGKILL");
}
