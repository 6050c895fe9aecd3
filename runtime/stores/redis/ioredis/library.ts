import type { Connection } from "../address";
import type { ClientLibrary, OwnClient } from "../client-port";
import { ReconnectingClient } from "../own-client";
import { IoredisConnection } from "./own-connection";
import { redisIn, type RedisClass } from "./redis-class";

/** The ioredis library, once it is loaded. */
export class IoredisLibrary implements ClientLibrary {
  readonly #Redis: RedisClass;

  constructor(Redis: RedisClass) {
    this.#Redis = Redis;
  }

  connect(connection: Connection, _what: string, shortestTimeLeftMs: () => number): OwnClient {
    return new ReconnectingClient(
      (listeners) => new IoredisConnection(this.#Redis, connection, listeners, shortestTimeLeftMs),
      shortestTimeLeftMs,
    );
  }
}

/** @param ioredis all exports of the package */
export function libraryOf(ioredis: unknown): ClientLibrary | undefined {
  const Redis = redisIn(ioredis);
  return Redis === undefined ? undefined : new IoredisLibrary(Redis);
}
