import { inRootContext } from "../../../runtime/base/clock";
import { Connections } from "../../../runtime/stores/postgres/connections";
import type { OpenConnection } from "../../../runtime/stores/postgres/connection";
import { postgresStore } from "../../../runtime/stores/postgres/postgres-store";
import { FEWEST_TOGETHER, RenewalGroups } from "../../../runtime/stores/postgres/renewal-groups";
import type { Store } from "../../../runtime/stores/port";
import { SeededRandom } from "../../support/seeded-random";
import { Refusals } from "../process-observer";
import type { Outcome } from "../outcome";
import type { End, OpenStore, Way } from "../simulated-store";
import { simulateOver } from "../world";
import { observedStore } from "./observed-store";
import { SimulatedPostgres } from "./server";
import { Session, type Route } from "./session";
import { transact } from "./transactions";
import { WholeGroups } from "./whole-groups";

/** The connections of a process for statements, as by default. */
const CONNECTIONS = 2;

/** The time of a few commands, each of which may wait for others, because a connection runs one statement at a time. */
const CALM_IDLE_MS = 100;

/** The share of processes behind a pooler, in worlds in which wake-ups may be lost. */
const POOLED = 0.15;

/** A fault that a test plants. */
export interface Fault {
  /** Changes the server. */
  readonly server?: (server: SimulatedPostgres) => void;
  /** Replaces the store of each process. */
  readonly store?: (store: Store) => Store;
}

/**
 * Simulates one world with locks in PostgreSQL. The processes run the real store with its connections, its wake-ups, and its guards. Only
 * the client library, the network, and the server are simulated. No two such worlds may run at the same time.
 */
export async function simulatePostgres(seed: number, fault: Fault = {}): Promise<Outcome> {
  const { random } = Math;
  const own = new SeededRandom(~seed);
  Math.random = () => own.next(); // For the pauses between attempts to connect.
  try {
    return await simulateOver(seed, inPostgres(fault, seed % 2 === 0 ? 1 : FEWEST_TOGETHER));
  } finally {
    Math.random = random;
  }
}

/** @param fewestTogether how many holds must be renewed together to share a row. With 1, each renewal is one of a group */
function inPostgres(fault: Fault, fewestTogether: number): OpenStore {
  return (surroundings) => {
    const server = new SimulatedPostgres(surroundings);
    fault.server?.(server);
    return {
      server,
      calmIdleMs: CALM_IDLE_MS,
      connect: (end) => connect(server, end, fault, fewestTogether),
      transact: (caller) => transact(caller, server, surroundings.random),
    };
  };
}

function connect(
  server: SimulatedPostgres,
  end: End,
  { store: tamper = (one) => one }: Fault,
  fewestTogether: number,
): Way {
  const { random, process, weather, observer } = end;
  const isPooled = weather().wakeUpLost > 0 && random.happens(POOLED);
  const route: Route = { ...end, server, isPooled, refusals: new Refusals() };
  const sessions = new Set<Session>();
  const open: OpenConnection = (listeners) => {
    const session = new Session(route, listeners, (gone) => sessions.delete(gone));
    sessions.add(session);
    return session;
  };
  const clock = inRootContext(process);
  const wholeGroups = new WholeGroups(server);
  const port = wholeGroups.ofPort(new Connections(open, CONNECTIONS, open, clock));
  const store = postgresStore(port, {
    clock,
    connections: CONNECTIONS,
    groups: new RenewalGroups(fewestTogether),
  });
  return {
    store: tamper(wholeGroups.ofStore(observedStore(store, observer))),
    break: () => {
      for (const session of sessions) session.break();
    },
  };
}
