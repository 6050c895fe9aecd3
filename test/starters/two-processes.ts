import { queueOf } from "../support/auxiliary-keys";
import { Gate } from "../support/gate";
import { freePort, type RedisServer } from "../support/redis-server";
import { until } from "../support/until";
import { start, type Running, type Shell } from "./shell";
import type { Starter } from "./starters";

const KEY = "LOCK_starter_A1";
const TIMEOUT_MS = 180_000;

/**
 * Starts the project twice. Both processes call the tagged function with the same key.
 *
 * @throws if the second process does not wait for the first, with what both printed
 */
export async function assertOneWaits(shell: Shell, starter: Starter, redis: RedisServer): Promise<void> {
  const gate = await Gate.open();
  const client = redis.client();
  const started = [1, 2].map(() => new Started(shell, starter, redis.url, gate.url));
  const hasFailed = (): boolean => started.some((one) => one.hasFailed);
  try {
    const [first, second] = started as [Started, Started];
    await Promise.all(started.map((one) => one.isReady()));
    void first.call();
    await until(() => gate.begun === 1 || hasFailed(), TIMEOUT_MS);
    void second.call();
    const isQueued = async (): Promise<boolean> => (await client.exists(queueOf(KEY))) === 1;
    await until(async () => (await isQueued()) || gate.begun > 1 || hasFailed(), TIMEOUT_MS);
    if (gate.begun > 1) throw new Error("Both bodies run at the same time.");
    if (!hasFailed() && (await client.exists(KEY)) === 0) throw new Error(`Redis does not hold ${KEY}.`);
    gate.letOneOut();
    await until(() => gate.begun === 2 || hasFailed(), TIMEOUT_MS);
    gate.letOneOut();
    const hasAnswered = (): boolean => started.every(({ answer }) => answer !== undefined);
    await until(() => hasAnswered() || hasFailed(), TIMEOUT_MS);
    if (hasFailed()) throw new Error("A call failed.");
  } catch (error) {
    const outputs = started.map(
      (one, nth) => `Process ${nth + 1} answered ${one.answer} and printed:\n${one.text}`,
    );
    throw new Error([(error as Error).message, ...outputs].join("\n"), { cause: error });
  } finally {
    gate.close();
    for (const one of started) await one.kill();
  }
}

/** A process of the project: a server with a route, or a program that calls the tagged function when it starts. */
class Started {
  answer: string | undefined;
  readonly #launch: (port: number) => Running;
  readonly #route: string | undefined;
  readonly #gate: string;
  #port = 0;
  #running: Running | undefined;

  constructor(shell: Shell, { start: { command, route } }: Starter, redis: string, gate: string) {
    this.#route = route;
    this.#gate = gate;
    this.#launch = (port) => {
      const env = { REDIS_URL: redis, PORT: String(port), HOST: "127.0.0.1", GATE: gate };
      return start(shell, command.replaceAll("{port}", String(port)), env);
    };
  }

  get text(): string {
    return this.#running?.text ?? "";
  }

  get hasFailed(): boolean {
    const isWrong = this.answer !== undefined && !this.answer.includes("A1 is paid");
    return isWrong || (this.#route !== undefined && this.#running?.hasEnded === true);
  }

  /** Resolves when the server answers. */
  async isReady(): Promise<void> {
    if (this.#route === undefined) return;
    this.#port = await freePort();
    this.#running = this.#launch(this.#port);
    await until(async () => this.hasFailed || (await answers(this.#url)), TIMEOUT_MS);
  }

  async call(): Promise<void> {
    if (this.#route === undefined) {
      this.#running = this.#launch(0);
      this.answer = (await this.#running.output).text;
    } else {
      const url = this.#url + this.#route.replace("{gate}", encodeURIComponent(this.#gate));
      this.answer = await fetch(url).then((response) => response.text(), String);
    }
  }

  async kill(): Promise<void> {
    this.#running?.kill();
    await this.#running?.output;
  }

  get #url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }
}

async function answers(url: string): Promise<boolean> {
  return await fetch(url).then(
    () => true,
    () => false,
  );
}
