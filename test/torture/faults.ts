import { setTimeout as pause } from "node:timers/promises";
import { forceRelease } from "../../runtime/admin/force-release";
import { monotonicMs } from "../support/monotonic";
import type { SeededRandom } from "../support/seeded-random";
import type { Keys } from "./plan";
import type { Member } from "./round";
import type { Route } from "./route";
import type { Topology } from "./topology";

type Fault = (member: Member) => Promise<void> | void;

/** How often a fault strikes the servers, and not a process or its network. */
const SERVER_SHARE = 0.35;

/** Faults of processes, connections, and servers. The seed determines them. */
export class Faults {
  readonly counts: Record<string, number> = {};
  readonly story: { readonly at: number; readonly text: string }[] = [];
  readonly #topology: Topology;
  readonly #keys: Keys;
  readonly #random: SeededRandom;
  readonly #members: readonly Member[];
  readonly #add: () => Promise<Member>;
  /** Faults that still last, such as a stopped process that will continue. */
  readonly #open = new Set<Promise<void>>();
  #isServerStruck = false;

  constructor(
    topology: Topology,
    keys: Keys,
    random: SeededRandom,
    members: readonly Member[],
    add: () => Promise<Member>,
  ) {
    this.#topology = topology;
    this.#keys = keys;
    this.#random = random;
    this.#members = members;
    this.#add = add;
  }

  /** Plays one fault: on one of the living processes, or on the servers. */
  doOne(): void {
    const isForServer = this.#random.happens(SERVER_SHARE);
    if (isForServer && !this.#isServerStruck) return this.#strikeServer();
    const [first, ...others] = this.#members.filter(
      ({ isReady, killedAt }) => isReady && killedAt === undefined,
    );
    if (first === undefined) return; // New ones are starting.
    const member = this.#random.oneOf(first, ...others);
    const [kind, fault] = this.#oneOf(this.#faults);
    this.#note(kind, `${kind} (${member.name})`);
    this.#open.add(Promise.resolve(fault(member)));
  }

  #strikeServer(): void {
    const { faults } = this.#topology;
    const [kind, fault] = this.#oneOf(faults);
    const strike = async (): Promise<void> => {
      this.#isServerStruck = true;
      this.#note(kind, `${kind} begins`);
      await fault(this.#random, this.#keys.all);
      this.story.push({ at: monotonicMs(), text: `${kind} has ended` });
      this.#isServerStruck = false;
    };
    this.#open.add(strike());
  }

  #oneOf<F>(faults: Readonly<Record<string, F>>): readonly [string, F] {
    const [first, ...others] = Object.entries(faults);
    if (first === undefined) throw new Error("there is no fault");
    return this.#random.oneOf(first, ...others);
  }

  #note(kind: string, text: string): void {
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
    this.story.push({ at: monotonicMs(), text });
  }

  /** Ends all faults that last. */
  async heal(): Promise<void> {
    await Promise.all(this.#open);
    for (const { routes } of this.#members) for (const route of routes) route.breakSilent();
  }

  get #faults(): Readonly<Record<string, Fault>> {
    return this.#topology.mayRepeatCommands ? { ...this.#always, ...this.#repeating } : this.#always;
  }

  readonly #always: Readonly<Record<string, Fault>> = {
    SIGKILL: async (member) => {
      member.killedAt = monotonicMs();
      await member.child.kill();
      await this.#add();
    },
    SIGSTOP: async ({ child }) => {
      child.signal("SIGSTOP");
      await pause(this.#random.below(2_500));
      child.signal("SIGCONT");
    },
    "silent route": async (member) => {
      const routes = this.#someOf(member);
      for (const route of routes) route.silence();
      await pause(1_000 + this.#random.below(2_000));
      for (const route of routes) route.breakSilent();
    },
    "lost replies": async (member) => {
      const routes = this.#someOf(member);
      for (const route of routes) route.loseReplies();
      await pause(this.#random.below(400));
      for (const route of routes) route.breakSilent();
    },
    "delayed messages": async (member) => {
      const deliveries = this.#someOf(member).map((route) => route.delay());
      await pause(this.#random.below(1_500));
      for (const deliver of deliveries) deliver();
    },
    "connection reset": (member) => {
      for (const route of this.#someOf(member)) route.reset();
    },
    "wall clock step": (member) => member.setWallClock(this.#random.below(7_200_000) - 3_600_000),
    forceRelease: async () => {
      const { all } = this.#keys;
      await forceRelease(all[this.#random.below(all.length)] ?? "").catch(() => {}); // The store may be down.
    },
  };

  readonly #repeating: Readonly<Record<string, Fault>> = {
    "repeated commands": async (member) => {
      const repeats = this.#someOf(member).map((route) => route.repeat());
      await pause(this.#random.below(1_500));
      for (const repeat of repeats) repeat();
    },
  };

  /** Returns all routes of the process, or only some if it has several. */
  #someOf({ routes }: Member): readonly Route[] {
    if (this.#random.happens(0.5)) return routes;
    const some = routes.filter(() => this.#random.happens(0.5));
    return some.length === 0 ? routes : some;
  }
}
