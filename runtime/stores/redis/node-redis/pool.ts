import { errorOf } from "../errors";
import { passing } from "../states";
import type { NodeRedisPool } from "./client";
import type { Place } from "./connection";
import type { Source } from "./source";

/**
 * A pool of connections to one server. Commands over different connections could overtake each other, so that a release would arrive before
 * its acquisition. Therefore the store has a connection of its own. It uses the pool only once, to read its options.
 */
export class PoolSource implements Source {
  readonly keyPrefix: string;
  readonly name = "pool";
  readonly #pool: NodeRedisPool;
  #place: Promise<Place> | undefined;

  constructor(given: NodeRedisPool) {
    const { _self: pool = given, _keyPrefix: keyPrefix = "" } = given;
    this.#pool = pool;
    this.keyPrefix = keyPrefix;
  }

  get isOpen(): boolean {
    return this.#pool.isOpen && !this.#pool.isClosing;
  }

  locate(): Promise<Place> {
    if (this.#place === undefined) {
      const place = this.#pool
        .execute((client) => ({ client }))
        .catch((error: Error) => {
          throw NO_FREE_CLIENT.test(error.message) ? errorOf(BUSY, error) : error;
        });
      this.#place = place;
      place.catch(() => (this.#place = undefined));
    }
    return this.#place;
  }

  doubt(): void {}

  onMoved(): () => void {
    return () => {};
  }
}

const NO_FREE_CLIENT = /^Timeout waiting for a client/;
const BUSY = passing(
  "all connections of the pool are in use, and Lockweave needs one to learn where the server is",
  "connect the pool before you call configure(), or raise its `maximum`",
);
