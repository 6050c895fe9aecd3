import type { SeededRandom } from "../support/seeded-random";
import type { Store } from "../../runtime/stores/port";
import type { Caller } from "./caller";
import { Connection } from "./connection";
import type { ProcessObserver } from "./process-observer";
import type { Invariants } from "./invariants";
import type { ProcessClock } from "./process-clock";
import { SimulatedServer } from "./server";
import type { Tamper } from "./tampering";
import type { Weather } from "./weather";
import type { WorldServer, WorldTime } from "./world-server";

/** The parts of a world that its lock server uses. */
export interface Surroundings {
  readonly world: WorldTime;
  readonly random: SeededRandom;
  /** Creates the judge of all replies. */
  judge(serverNow: () => number): Invariants;
  /** Called after each executed command. */
  onExecuted(): void;
}

/** The way of one process to the server. */
export interface Way {
  readonly store: Store;
  /** Ends its connections. */
  break(): void;
}

/** The process at the other end of a way. */
export interface End {
  readonly random: SeededRandom;
  readonly process: ProcessClock;
  readonly weather: () => Weather;
  readonly observer: ProcessObserver;
}

/** The server of a world, and how its processes use it. */
export interface SimulatedStore {
  readonly server: WorldServer;
  connect(end: End): Way;
  /** The longest time for which a key may be free while a caller waits in calm weather: the time of a few commands. */
  readonly calmIdleMs: number;
  /** Runs a transaction of the application inside a body, if the store knows transactions. */
  transact?(caller: Caller): Promise<void>;
}

/** Opens the store of a new world. */
export type OpenStore = (surroundings: Surroundings) => SimulatedStore;

/** Locks in Redis. */
export function inRedis(tamper: Tamper): OpenStore {
  return ({ world, judge, onExecuted }) => {
    const server = new SimulatedServer(world, (now) => judge(now).truth, tamper, onExecuted);
    return {
      server,
      calmIdleMs: 25,
      connect({ random, process, weather, observer }) {
        const connection = new Connection(world, random, process, server, weather, observer);
        return { store: connection, break: () => connection.break() };
      },
    };
  };
}
