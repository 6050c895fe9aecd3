import { setTimeout as pause } from "node:timers/promises";
import { monotonicMs } from "../support/monotonic";
import type { SeededRandom } from "../support/seeded-random";
import { forceRelease } from "../../runtime/admin/force-release";
import type { Keys } from "./plan";
import type { Member, Place } from "./round";

type Fault = (member: Member) => Promise<void> | void;

/** Faults of processes, connections, and Redis. The seed determines them. */
export class Faults {
  readonly counts: Record<string, number> = {};
  readonly story: { readonly at: number; readonly text: string }[] = [];
  readonly #place: Place;
  readonly #keys: Keys;
  readonly #random: SeededRandom;
  readonly #members: readonly Member[];
  readonly #add: () => Promise<Member>;
  /** Faults that still last, such as a stopped process that will continue. */
  readonly #open = new Set<Promise<void>>();

  constructor(
    place: Place,
    keys: Keys,
    random: SeededRandom,
    members: readonly Member[],
    add: () => Promise<Member>,
  ) {
    this.#place = place;
    this.#keys = keys;
    this.#random = random;
    this.#members = members;
    this.#add = add;
  }

  /** Plays one fault on one of the living processes, or on all. */
  async doOne(): Promise<void> {
    const [first, ...others] = this.#members.filter(
      ({ isReady, killedAt }) => isReady && killedAt === undefined,
    );
    if (first === undefined) return; // New ones are starting.
    const member = this.#random.oneOf(first, ...others);
    const kinds = Object.keys(this.#faults);
    const kind = kinds[this.#random.below(kinds.length)] ?? "";
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
    this.story.push({ at: monotonicMs(), text: `${kind} (${member.name})` });
    await this.#faults[kind]?.(member);
  }

  /** Ends all faults that last. */
  async heal(): Promise<void> {
    await Promise.all(this.#open);
    for (const { route } of this.#members) route.breakSilent();
    await this.#place.admin.call("CLIENT", "UNPAUSE");
  }

  readonly #faults: Readonly<Record<string, Fault>> = {
    SIGKILL: async (member) => {
      member.killedAt = monotonicMs();
      await member.child.kill();
      this.#open.add(this.#add().then(() => {}));
    },
    SIGSTOP: (member) => {
      member.child.signal("SIGSTOP");
      this.#meanwhile(this.#random.below(2_500), () => member.child.signal("SIGCONT"));
    },
    "CLIENT KILL": async () => {
      const type = this.#random.oneOf("normal", "pubsub");
      await this.#place.admin.call("CLIENT", "KILL", "TYPE", type, "SKIPME", "yes");
    },
    "SCRIPT FLUSH": async () => void (await this.#place.admin.script("FLUSH")),
    "CLIENT PAUSE": async () => {
      const mode = this.#random.oneOf("WRITE", "ALL");
      await this.#place.admin.call("CLIENT", "PAUSE", String(this.#random.below(800)), mode);
    },
    "DEBUG SLEEP": async () => {
      await this.#place.admin.call("DEBUG", "SLEEP", String(this.#random.below(800) / 1_000));
    },
    "silent route": ({ route }) => {
      route.silence();
      this.#meanwhile(1_000 + this.#random.below(2_000), () => route.breakSilent());
    },
    "connection reset": ({ route }) => route.reset(),
    "wall clock steps back": ({ child }) => child.tell(String(-this.#random.below(3_600_000))),
    forceRelease: async () => {
      const { all } = this.#keys;
      await forceRelease(all[this.#random.below(all.length)] ?? "").catch(() => {}); // Redis may be paused.
    },
  };

  #meanwhile(ms: number, act: () => void): void {
    const later = async (): Promise<void> => {
      await pause(ms);
      act();
    };
    this.#open.add(later());
  }
}
