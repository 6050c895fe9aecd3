import type { CallersConfiguration, CallersReport } from "../faults/children/callers";
import { startChild, type Child } from "./child";
import { deferred, type Deferred } from "./deferred";
import { monotonicMs } from "./monotonic";
import type { RedisServer } from "./redis-server";
import type { Section } from "./sections";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy";

type Setting = Omit<CallersConfiguration, "url">;

/** Where the locks are: one server, or the masters of a quorum. */
type Home = Pick<RedisServer, "port"> | { readonly ports: readonly number[] };

/** Real processes that contend for one key, each over a network of its own, and what they did. */
export class Arena {
  readonly #home: Home;
  readonly #setting: Setting;
  readonly #everybody: Contender[] = [];

  constructor(home: Home, setting: Setting) {
    this.#home = home;
    this.#setting = setting;
  }

  async add(): Promise<Contender> {
    const ports = "ports" in this.#home ? this.#home.ports : [this.#home.port];
    const proxies = await Promise.all(ports.map((port) => startTcpProxy(port)));
    const urls = proxies.map(({ port }) => `redis://127.0.0.1:${port}`);
    const url = "ports" in this.#home ? urls : (urls[0] ?? "");
    const name = `process ${this.#everybody.length + 1}`;
    const contender = new Contender(name, proxies, { ...this.#setting, url });
    this.#everybody.push(contender);
    await contender.child.reported(({ event }) => event === "ready");
    return contender;
  }

  /** All that happened so far. */
  get sections(): Section[] {
    return this.#everybody.flatMap(({ sections }) => [...sections.values()]);
  }

  /** The codes of the errors that callers got. */
  get failures(): string[] {
    return this.#everybody.flatMap(({ failures }) => failures);
  }

  /** Those who are alive end in good order: their exit codes, and what they wrote to stderr. */
  async end(): Promise<string[]> {
    const alive = this.#everybody.filter(({ isKilled }) => !isKilled);
    for (const { child } of alive) child.signal("SIGTERM");
    return await Promise.all(
      alive.map(async ({ child }) => `${(await child.ended).code} ${child.complaints}`.trim()),
    );
  }

  /** Whatever became of the test, nothing of it stays. */
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
  /** One on the way to each server. */
  readonly proxies: readonly TcpProxy[];
  readonly sections = new Map<number, Section>();
  readonly failures: string[] = [];
  isKilled = false;
  readonly #name: string;
  #longBody: Deferred<void> = deferred();

  constructor(name: string, proxies: readonly TcpProxy[], configuration: CallersConfiguration) {
    this.#name = name;
    this.proxies = proxies;
    this.child = startChild<CallersReport>("callers.ts", configuration, (report) => this.#note(report));
  }

  get proxy(): TcpProxy {
    const [proxy] = this.proxies;
    if (proxy === undefined) throw new Error("it has no way to a server");
    return proxy;
  }

  /** Resolves when one of its bodies has just entered that stays for longer than its lock time. */
  async inLongBody(): Promise<void> {
    this.#longBody = deferred();
    this.child.tell("long");
    await this.#longBody.promise;
  }

  /** Its bodies end with it. */
  async kill(): Promise<void> {
    this.isKilled = true;
    this.child.signal("SIGKILL");
    const leftAt = monotonicMs();
    await this.child.ended;
    await this.child.closed; // What it had still reported has come.
    for (const [id, section] of this.sections) {
      if (section.leftAt === Infinity) this.sections.set(id, { ...section, leftAt });
    }
  }

  #note(report: CallersReport): void {
    if (report.event === "failed") this.failures.push(report.code);
    else if (report.event === "entered") this.#enter(report);
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
  report: Exclude<CallersReport, { event: "ready" | "entered" | "failed" }>,
): Partial<Section> {
  if (report.event === "believes") return { believedUntil: report.until };
  if (report.event === "told") return { toldAt: report.at };
  return report.event === "left" ? { leftAt: report.at } : { wasLeftInTheDark: true };
}
