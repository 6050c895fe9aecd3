import type { Configuration } from "../../runtime/config/configuration";
import type { LockOptions } from "../../runtime/lock/settings";
import type { SeededRandom } from "../support/seeded-random";
import type { Route } from "./route";
import type { StoreTarget } from "./target";

/** The network between one process and its servers, and how the process connects through it. */
export interface Access {
  readonly routes: readonly Route[];
  readonly target: StoreTarget;
}

/** A fault of the servers. It lasts until the promise resolves, and then the servers work again. */
export type ServerFault = (random: SeededRandom, keys: readonly string[]) => Promise<void> | void;

/** Servers that keep locks. The round and the checker know nothing else about them. */
export interface Topology {
  /** The options without which this topology does not promise mutual exclusion, and those that it does not have. */
  readonly options: LockOptions;
  /** Whether it has locks for readers and with permits, and promises that they are kept through the faults below. */
  readonly hasSharedLocks: boolean;
  /** Where an administrator finds the locks. */
  readonly configuration: Pick<Configuration, "redis" | "store" | "postgres">;
  /** The faults of the servers, by name. Only one of them lasts at a time. */
  readonly faults: Readonly<Record<string, ServerFault>>;
  /** Whether a client may send a command again on another connection. In PostgreSQL, a command belongs to its connection. */
  readonly mayRepeatCommands: boolean;
  /** Gives a network of its own to a new process. */
  connect(random: SeededRandom): Promise<Access>;
  /** Returns what would stay too long after all processes have ended. */
  leftovers(): Promise<string[]>;
  /** Deletes all locks. */
  clear(): Promise<void>;
  stop(): Promise<void>;
}
