import type { Source } from "./connection";

/** A client library that can connect to a URL. */
export interface PostgresLibrary {
  at(url: string): Source;
}
