import type { Lock } from "../../runtime/lock";
import type { LockOptions } from "../../runtime/settings";
import { FleetProcess } from "../support/fleet";
import type { SeededRandom } from "../support/seeded-random";
import type { VirtualClock } from "../support/virtual-clock";
import { Connection } from "./connection";
import { ProcessClock } from "./process-clock";
import type { SimulatedServer } from "./server";
import { requestIdOf, type Grant } from "./truth";
import type { Weather } from "./weather";

/** One process: the runtime's real code, with a time and a connection of its own. */
export class SimulatedProcess {
  readonly number: number;
  readonly clock: ProcessClock;
  readonly connection: Connection;
  /** What it lets in its callers on, by key. */
  readonly grants = new Map<string, Grant>();
  readonly #process: FleetProcess;

  constructor(
    number: number,
    world: VirtualClock,
    random: SeededRandom,
    server: SimulatedServer,
    weather: () => Weather,
  ) {
    this.number = number;
    // The server's clock may differ from that of a process by less than the runtime allows for.
    const rate = weather().name === "calm" ? 1 : 0.992 + random.next() * 0.016;
    this.clock = new ProcessClock(world, random, rate);
    this.connection = new Connection(world, random, this.clock, server, weather);
    let locks = 0;
    this.#process = new FleetProcess(
      {
        store: this.connection,
        clock: this.clock,
        commandTimeout: random.oneOf("1s", "300ms"),
        logger: { warn: () => {} },
      },
      { newRequestId: () => requestIdOf(number, (locks += 1)) },
    );
  }

  lock(key: string, options: LockOptions): Lock {
    return this.#process.lock(key, options);
  }

  get isClosing(): boolean {
    return this.#process.locker.lines.closing;
  }

  /** As `shutdown()` begins: nobody is let in any more, and those inside come to their end. */
  close(): void {
    this.#process.locker.lines.close();
  }

  get hasLines(): boolean {
    return !this.#process.locker.lines.isEmpty;
  }

  get isGivingBack(): boolean {
    return this.#process.locker.lines.givingBack.size > 0;
  }

  /** Resolves when so much of its own time has passed, and it is awake. */
  passes(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.clock.after(ms, resolve);
    });
  }
}
