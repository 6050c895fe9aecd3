/** A client of Valkey GLIDE, as far as the adapter uses it. */
export interface Glide {
  customCommand(words: readonly string[], options: CommandOptions): Promise<unknown>;
  close(): void;
  readonly constructor: GlideClass;
}

/** A `GlideClusterClient`, as far as the adapter uses it. */
export interface GlideCluster extends Glide {
  exec(
    batch: GlideBatch,
    raiseOnError: boolean,
    options: CommandOptions & { readonly route: GlideRoute },
  ): Promise<unknown>;
}

/** The class of a client. Only through it can the adapter create another client, because nothing here imports the package. */
interface GlideClass extends Function {
  createClient?(config: object): Promise<Glide>;
}

/** A `ClusterBatch`: commands that GLIDE sends to one node in one write. */
export interface GlideBatch {
  readonly commands: readonly object[];
  readonly isAtomic: boolean;
  readonly setCommandsIndexes: readonly number[];
}

/**
 * The node to which GLIDE sends a batch: the master of a key's slot, the node at an address, or any node. GLIDE 2.5 ignores the number in a
 * route by the number of a slot.
 */
export type GlideRoute =
  | { readonly type: "primarySlotKey"; readonly key: string }
  | ({ readonly type: "routeByAddress" } & Endpoint)
  | "randomNode";

/** An address in the form of GLIDE. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** The options of a client that the adapter reads. */
export interface GlideConfig {
  /** Returns the address at which a node is reached. */
  readonly addressResolver?: (host: string, port: number) => readonly [host: string, port: number];
  readonly addresses?: readonly object[];
  readonly advancedConfiguration?: object;
  readonly databaseId?: number;
  readonly inflightRequestsLimit?: number;
}

interface CommandOptions {
  readonly decoder: number;
}

/**
 * The options of each of our commands: `Decoder.Bytes`. With `Decoder.String`, GLIDE rejects a command that finds a value of another program
 * that is not valid text.
 */
export const AS_BYTES: CommandOptions = { decoder: 0 };
