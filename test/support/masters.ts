import { startRedis, startRedisAt, type RedisServer } from "./redis-server";

/** Independent Redis masters that a test can kill, hang, and restart. */
export class Masters {
  readonly #servers: RedisServer[] = [];
  readonly #dead = new Set<number>();

  static async start(count: number): Promise<Masters> {
    const masters = new Masters();
    for (let n = 0; n < count; n += 1) masters.#servers.push(await startRedis());
    return masters;
  }

  get urls(): string[] {
    return this.#servers.map(({ url }) => url);
  }

  get ports(): number[] {
    return this.#servers.map(({ port }) => port);
  }

  server(n: number): RedisServer {
    const server = this.#servers[n];
    if (server === undefined) throw new Error(`there is no master ${n}`);
    return server;
  }

  async kill(...which: number[]): Promise<void> {
    for (const n of which) {
      this.#dead.add(n);
      await this.server(n).stop();
    }
  }

  /** Starts the masters again, without their data. */
  async revive(...which: number[]): Promise<void> {
    for (const n of which) {
      this.#servers[n] = await startRedisAt(this.server(n).port);
      this.#dead.delete(n);
    }
  }

  async restart(...which: number[]): Promise<void> {
    for (const n of which) {
      await this.kill(n);
      await this.revive(n);
    }
  }

  hang(...which: number[]): void {
    for (const n of which) process.kill(this.server(n).pid, "SIGSTOP");
  }

  moveOn(...which: number[]): void {
    for (const n of which) process.kill(this.server(n).pid, "SIGCONT");
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.filter((_, n) => !this.#dead.has(n)).map((server) => server.stop()));
  }
}
