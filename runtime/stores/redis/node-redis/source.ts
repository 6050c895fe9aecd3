import type { Place } from "./connection";

/** Says where the server is: an address, or a client of the user that has several connections or looks for its server. */
export interface Source {
  readonly keyPrefix: string;
  /** Whether there is a server to connect to. A client of the user must be connected, and must not be closed. */
  readonly isOpen: boolean;
  /** The word for the client in messages. Undefined for an address. Then the connection opens immediately, and keeps the process alive. */
  readonly name: "client" | "pool" | "sentinel" | undefined;
  /** Why the client is closed for good, if that is known. */
  readonly fault?: Error | undefined;
  /** The place of the server, if it never changes. */
  readonly place?: Place;
  /** Resolves to the place of the server. */
  locate(): Promise<Place>;
  /** Whether a server that answered ROLE like this is the right one. Absent if there is only one server. */
  accepts?(role: unknown): boolean;
  /** Records that the server did not answer, or is the wrong one. */
  doubt(): void;
  /** Calls the listener when the server may be another one. Returns a function that removes it. */
  onMoved(listener: () => void): () => void;
  /** Closes the connections of the source. Absent if it has none. */
  close?(): void;
}
