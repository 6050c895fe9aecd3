import { loadLibrary as loadOneOf, type Choice, type LibraryLog } from "../load-library";
import { LIBRARIES, type LibraryName } from "./address";
import type { ClientLibrary } from "./client-port";
import { LOADERS } from "./recognize-client";

const CHOICE: Choice<LibraryName, ClientLibrary> = {
  server: "Redis",
  what: "A Redis URL",
  names: LIBRARIES,
  described: {
    ioredis: "ioredis 5.4 or later",
    redis: "node-redis 5 or later (the package `redis`)",
  },
  loaders: LOADERS,
};

/**
 * Loads the client library for a URL.
 *
 * @throws {LockMisconfiguredError} if none is installed, or if all are too old
 */
export function loadLibrary(
  chosen: LibraryName | undefined,
  log?: LibraryLog,
): ClientLibrary | Promise<ClientLibrary> {
  return loadOneOf(CHOICE, chosen, log);
}

/** The libraries for several URLs, by the names that the user chose. */
export type Libraries = ReadonlyMap<LibraryName | undefined, ClientLibrary>;

/** Loads the client libraries for several URLs, like {@link loadLibrary}. */
export function loadLibraries(
  chosen: ReadonlySet<LibraryName | undefined>,
  log?: LibraryLog,
): Libraries | Promise<Libraries> {
  const late: Promise<readonly [LibraryName | undefined, ClientLibrary]>[] = [];
  const loaded = new Map<LibraryName | undefined, ClientLibrary>();
  for (const name of chosen) {
    const library = loadLibrary(name, log);
    if (library instanceof Promise) late.push(library.then((one) => [name, one]));
    else loaded.set(name, library);
  }
  return late.length === 0 ? loaded : Promise.all(late).then((all) => new Map(all));
}
