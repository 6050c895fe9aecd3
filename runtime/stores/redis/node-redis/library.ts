import type { Connection } from "../address";
import type { ClientLibrary, OwnClient } from "../client-port";
import { ReconnectingClient } from "../own-client";
import { AddressSource } from "./address-source";
import { createClientIn, type CreateClient } from "./create-client";
import { optionsOf, optionsOfSentinels } from "./options";
import { NodeRedisConnection } from "./own-connection";
import { SentinelAddress } from "./sentinel-address";
import type { Source } from "./source";

/** The library node-redis, once it is loaded. */
export class NodeRedisLibrary implements ClientLibrary {
  readonly #createClient: CreateClient;

  constructor(createClient: CreateClient) {
    this.#createClient = createClient;
  }

  connect(connection: Connection, what: string, shortestTimeLeftMs: () => number): OwnClient {
    const source = this.#sourceOf(connection, what, shortestTimeLeftMs);
    return new ReconnectingClient(
      (listeners) => new NodeRedisConnection(source, listeners),
      shortestTimeLeftMs,
    );
  }

  #sourceOf(connection: Connection, what: string, shortestTimeLeftMs: () => number): Source {
    const template = this.#createClient(optionsOf(connection, what));
    const { sentinels } = connection;
    if (sentinels === undefined) return new AddressSource(template);
    const { hosts, name } = sentinels;
    const sentinel = this.#createClient(optionsOfSentinels(connection, sentinels));
    return new SentinelAddress({ master: template, sentinel, hosts, name }, shortestTimeLeftMs);
  }
}

/** @param redis all exports of the package */
export function libraryOf(redis: unknown): ClientLibrary | undefined {
  const createClient = createClientIn(redis);
  return createClient === undefined ? undefined : new NodeRedisLibrary(createClient);
}
