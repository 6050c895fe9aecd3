import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { ExecutionContext } from "ava";
import { accepts } from "../../support/accepts";
import { CONTAINER, onlyChildOf } from "../../support/container";
import { Gate } from "../../support/gate";
import { freePort } from "../../support/redis-server";
import { until } from "../../support/until";

interface Launch {
  readonly cwd: string;
  readonly redisUrl: string;
  readonly gateUrl: string;
  /** Whether it runs as process 1, as in a container. */
  readonly isFirstProcess?: boolean;
}

/** A process that serves `POST /orders/:orderNo/pay` and `GET /ready`. */
export class Server {
  readonly #child: ChildProcess;
  readonly #isFirstProcess: boolean;
  readonly #port: number;
  readonly #closed: Promise<unknown>;
  #output = "";

  private constructor(child: ChildProcess, port: number, isFirstProcess: boolean) {
    this.#child = child;
    this.#port = port;
    this.#isFirstProcess = isFirstProcess;
    this.#closed = once(child, "close");
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => (this.#output += text));
    }
  }

  /** Starts the command, and resolves when it is ready. `{port}` is the port to listen to. */
  static async start(
    t: ExecutionContext,
    command: readonly string[],
    { cwd, redisUrl, gateUrl, isFirstProcess = false }: Launch,
  ): Promise<Server> {
    const port = await freePort();
    const words = [...(isFirstProcess ? CONTAINER : []), ...command];
    const [file = "", ...args] = words.map((word) => word.replace("{port}", String(port)));
    const env = { ...process.env, REDIS_URL: redisUrl, GATE: gateUrl, PORT: String(port) };
    const child = spawn(file, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    const server = new Server(child, port, isFirstProcess);
    t.teardown(() => server.kill());
    await until(async () => {
      server.assertRuns();
      return (await fetch(server.#url("ready")).catch(() => undefined))?.status === 200;
    });
    return server;
  }

  /** Returns the status and the text of the response. */
  async pay(orderNo: string): Promise<string> {
    const response = await fetch(this.#url(`orders/${orderNo}/pay`), { method: "POST" });
    return `${response.status} ${await response.text()}`;
  }

  async says(words: string): Promise<void> {
    await until(() => {
      this.assertRuns();
      return this.#output.includes(words);
    });
  }

  /** Sends SIGTERM, and resolves when the server accepts no more connections. */
  async terminate(): Promise<void> {
    process.kill(this.#isFirstProcess ? onlyChildOf(this.#child.pid) : (this.#child.pid ?? NaN), "SIGTERM");
    await until(async () => !(await accepts(this.#port)));
  }

  /** Resolves when the process has ended, to its exit code or the signal that ended it. */
  async ended(): Promise<number | string | null> {
    await this.#closed;
    return this.#child.exitCode ?? this.#child.signalCode;
  }

  /** @throws if it has ended */
  assertRuns(): void {
    if (this.#child.exitCode !== null) throw new Error(`It has ended:\n${this.#output}`);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#closed;
  }

  #url(route: string): string {
    return `http://127.0.0.1:${this.#port}/${route}`;
  }
}

/**
 * Terminates the first of two servers of one application, as a rolling update does. The first one has two requests for
 * one order, and the second one has another request for it.
 */
export async function assertNoRequestIsLost(
  t: ExecutionContext,
  gate: Gate,
  [first, second]: readonly [Server, Server],
): Promise<void> {
  const answers = [first.pay("A1")];
  await until(() => gate.begun === 1);
  answers.push(first.pay("A1"));
  await first.says("waits for LOCK_pay_A1");
  answers.push(second.pay("A1"));
  await second.says("waits for LOCK_pay_A1");
  await first.terminate();
  for (let begun = 1; begun <= answers.length; begun += 1) {
    await until(() => gate.begun >= begun);
    t.is(gate.begun, begun, "Two bodies ran at the same time.");
    gate.letOneOut();
  }
  t.deepEqual(await Promise.all(answers), ["200 paid A1", "200 paid A1", "200 paid A1"]);
  t.is(await first.ended(), 0);
}

/** Opens a gate for one test. */
export async function openGate(t: ExecutionContext): Promise<Gate> {
  const gate = await Gate.open();
  t.teardown(() => gate.close());
  return gate;
}
