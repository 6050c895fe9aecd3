import type { CallersConfiguration, CallersReport } from "../faults/children/callers";
import { startChild, type Child } from "./child";
import { deferred, type Deferred } from "./deferred";
import { monotonicMs } from "./monotonic";
import type { RedisServer } from "./redis-server";
import type { Section } from "./sections";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy";

type Setting = Omit<CallersConfiguration, "url">;

/** The servers of the locks: one server, or the masters of a quorum. */
type Deployment = Pick<RedisServer, "port"> | { readonly ports: readonly number[] };

/** Real processes that contend for one key, each over its own network, with a record of their bodies. */
export class Arena {
  readonly #deployment: Deployment;
  readonly #setting: Setting;
  readonly #everybody: Contender[] = [];

  constructor(deployment: Deployment, setting: Setting) {
    this.#deployment = deployment;
    this.#setting = setting;
  }

  /** @param own the settings in which this process differs */
  async add(own: Partial<Setting> = {}): Promise<Contender> {
    const ports = "ports" in this.#deployment ? this.#deployment.ports : [this.#deployment.port];
    const proxies = await Promise.all(ports.map((port) => startTcpProxy(port)));
    const urls = proxies.map(({ port }) => `redis://127.0.0.1:${port}`);
    const url = "ports" in this.#deployment ? urls : (urls[0] ?? "");
    const name = `process ${this.#everybody.length + 1}`;
    const contender = new Contender(name, proxies, { ...this.#setting, ...own, url });
    this.#everybody.push(contender);
    await contender.child.reported(({ event }) => event === "ready");
    return contender;
  }

  /** The bodies that have run so far. */
  get sections(): Section[] {
    return this.#everybody.flatMap(({ sections }) => [...sections.values()]);
  }

  /** The codes of the errors that callers got. */
  get failures(): string[] {
    return this.#everybody.flatMap(({ failures }) => failures);
  }

  /** Ends the processes with SIGTERM. Resolves to their exit codes and what they wrote to stderr. */
  async end(): Promise<string[]> {
    const alive = this.#everybody.filter(({ isKilled }) => !isKilled);
    for (const { child } of alive) child.signal("SIGTERM");
    return await Promise.all(
      alive.map(async ({ child }) => `${(await child.ended).code} ${child.complaints}`.trim()),
    );
  }

  /** Kills all processes and stops their networks. */
  async clear(): Promise<void> {
    await Promise.all(
      this.#everybody.map(async ({ child, proxies }) => {
        await child.kill();
        await Promise.all(proxies.map((proxy) => proxy.stop()));
      }),
    );
  }
}

/** One process of the arena, and the network between it and Redis. */
export class Contender {
  readonly child: Child<CallersReport>;
  /** One proxy for each server. */
  readonly proxies: readonly TcpProxy[];
  readonly sections = new Map<number, Section>();
  readonly failures: string[] = [];
  isKilled = false;
  /** Whether all calls of its callers have settled, after SIGTERM. */
  hasEnded = false;
  readonly #name: string;
  #longBody: Deferred<void> = deferred();

  constructor(name: string, proxies: readonly TcpProxy[], configuration: CallersConfiguration) {
    this.#name = name;
    this.proxies = proxies;
    this.child = startChild<CallersReport>("callers.ts", configuration, (report) => this.#note(report));
  }

  get proxy(): TcpProxy {
    const [proxy] = this.proxies;
    if (proxy === undefined) throw new Error("the process has no proxy to a server");
    return proxy;
  }

  /** Resolves when one of its bodies starts that runs for longer than its lock time. */
  async inLongBody(): Promise<void> {
    this.#longBody = deferred();
    this.child.tell("long");
    await this.#longBody.promise;
  }

  /** Kills the process, which also ends its bodies. */
  async kill(): Promise<void> {
    this.isKilled = true;
    this.child.signal("SIGKILL");
    const leftAt = monotonicMs();
    await this.child.ended;
    await this.child.closed; // Its last reports have arrived.
    for (const [id, section] of this.sections) {
      if (section.leftAt === Infinity) this.sections.set(id, { ...section, leftAt });
    }
  }

  #note(report: CallersReport): void {
    if (report.event === "failed") this.failures.push(report.code);
    else if (report.event === "entered") this.#enter(report);
    else if (report.event === "ended") this.hasEnded = true;
    else if (report.event !== "ready") this.#change(report.id, changeBy(report));
  }

  #enter({ id, at, believedUntil, fencingToken, isLong }: CallersReport & { event: "entered" }): void {
    const name = `${this.#name}, body ${id}`;
    this.sections.set(id, { name, enteredAt: at, leftAt: Infinity, believedUntil, fencingToken });
    if (isLong) this.#longBody.resolve();
  }

  #change(id: number, change: Partial<Section>): void {
    const section = this.sections.get(id);
    if (section !== undefined) this.sections.set(id, { ...section, ...change });
  }
}

function changeBy(
  report: Exclude<CallersReport, { event: "ready" | "ended" | "entered" | "failed" }>,
): Partial<Section> {
  if (report.event === "believes") return { believedUntil: report.until };
  if (report.event === "signaled") return { signaledAt: report.at };
  return report.event === "left" ? { leftAt: report.at } : { missedSignal: true };
}
