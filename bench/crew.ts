import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { now } from "./clock";
import type { Holding, HoldingRecord } from "./holding";
import type { Loop } from "./loop";
import type { Run } from "./referee";
import type { Answer, Jobs, Opening, Order } from "./serve";

/** The time for the start signal to reach all processes. */
const START_IN_MS = 30;
const LONGEST_JOB_MS = 180_000;

let crews = 0;

/** Processes that run one contestant. Each run starts new ones, so that no run affects another. */
export class Crew implements AsyncDisposable {
  readonly #contestant: string;
  readonly #processes: ChildProcess[];
  /** Each crew has another key, because the last holder of an earlier crew may have been killed before its release. */
  readonly #key = `order-${(crews += 1)}`;

  /** @param worker the program of its processes. It gets the name of the contestant */
  constructor(contestant: string, processes: number, worker = "worker.ts") {
    this.#contestant = contestant;
    this.#processes = Array.from({ length: processes }, () =>
      fork(join(__dirname, worker), [contestant], {
        execArgv: ["--require", "ts-node/register/transpile-only", "--expose-gc", "--no-flush-bytecode"],
        serialization: "advanced",
      }),
    );
  }

  /** Connects and warms up this many clients, spread evenly over the processes. */
  async open(opening: Opening): Promise<void> {
    const processes = this.#processes.length;
    await this.#each("open", (nth) => ({
      ...opening,
      clients: Math.max(Math.ceil((opening.clients - nth) / processes), 0),
    }));
  }

  /** Lets the callers of all processes loop, starting at the same moment. */
  async loop(loop: Omit<Loop, "startAt" | "key">): Promise<Run> {
    const startAt = now() + START_IN_MS;
    const records = await this.#each("loop", () => ({ ...loop, key: this.#key, startAt }));
    return { startAt, settlingMs: loop.settlingMs ?? 0, durationMs: loop.durationMs, records };
  }

  async hold(holding: Holding): Promise<HoldingRecord[]> {
    return await this.#each("hold", () => holding);
  }

  /** Waits for keys that others hold, until the processes end. */
  async wait(holding: Holding): Promise<HoldingRecord[]> {
    return await this.#each("wait", () => holding);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      this.#processes.map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const ended = once(child, "exit");
        child.kill("SIGKILL");
        await ended;
      }),
    );
  }

  #each<Job extends keyof Jobs>(
    job: Job,
    argument: (nth: number) => Parameters<Jobs[Job]>[0],
  ): Promise<Awaited<ReturnType<Jobs[Job]>>[]> {
    return Promise.all(
      this.#processes.map(
        async (child, nth) => (await this.#send(child, job, argument(nth))) as Awaited<ReturnType<Jobs[Job]>>,
      ),
    );
  }

  /** Sends one job to a process, and returns its result. A process runs one job at a time. */
  async #send(child: ChildProcess, job: keyof Jobs, argument: unknown): Promise<unknown> {
    const done = new AbortController();
    const answered = once(child, "message", { signal: done.signal });
    const tooLate = AbortSignal.timeout(LONGEST_JOB_MS);
    const exited = once(child, "exit", { signal: AbortSignal.any([done.signal, tooLate]) });
    child.send({ job, argument } satisfies Order);
    try {
      const [answer] = (await Promise.race([answered, exited])) as [Answer | number | null];
      if (typeof answer !== "object" || answer === null) throw new Error(`its process ended: ${answer}`);
      if ("error" in answer) throw new Error(answer.error);
      return answer.result;
    } catch (error) {
      throw new Error(`${this.#contestant} failed to ${job}`, { cause: error });
    } finally {
      done.abort();
      for (const settled of [answered, exited]) settled.catch(() => {});
    }
  }
}
