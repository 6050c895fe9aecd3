import type { NodeRedis } from "./client";
import type { Place } from "./connection";
import type { Source } from "./source";
import { stateOf } from "./state";

/**
 * A client from `createClient()` of version 5. If its connection breaks while a command is about to be written, the client counts that
 * command as sent, and takes the first reply on the next connection for its reply. Then it may never become ready again, or give each
 * command the reply of another one. Therefore the store has a connection of its own, which never reconnects.
 */
export class ClientSource implements Source {
  readonly keyPrefix: string;
  readonly name = "client";
  readonly place: Place;
  readonly #state: ReturnType<typeof stateOf>;

  constructor(client: NodeRedis) {
    this.place = { client };
    this.#state = stateOf(client, false);
    this.keyPrefix = client.options?.keyPrefix ?? "";
  }

  get isOpen(): boolean {
    return this.place.client.isOpen;
  }

  get fault(): Error | undefined {
    return this.#state.fault();
  }

  locate(): Promise<Place> {
    return Promise.resolve(this.place);
  }

  doubt(): void {}

  onMoved(): () => void {
    return () => {};
  }
}

/** Whether it is a client of version 5. Since version 6, clients have key prefixes, and keep their replies in order. */
export function isOfVersion5(client: object): boolean {
  return !("_keyPrefix" in client);
}
