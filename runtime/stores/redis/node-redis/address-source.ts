import type { NodeRedis } from "./client";
import type { Place } from "./connection";
import type { Source } from "./source";

/** The address of one server. */
export class AddressSource implements Source {
  readonly keyPrefix: string;
  readonly isOpen = true;
  readonly name = undefined;
  readonly place: Place;

  /** @param template a client that never connects. The connections are duplicates of it */
  constructor(template: NodeRedis) {
    this.place = { client: template };
    this.keyPrefix = template.options?.keyPrefix ?? "";
  }

  locate(): Promise<Place> {
    return Promise.resolve(this.place);
  }

  doubt(): void {}

  onMoved(): () => void {
    return () => {};
  }

  close(): void {
    discard(this.place.client);
  }
}

/** Destroys a template, because node-redis counts each client until it is destroyed. */
export function discard(template: NodeRedis): void {
  try {
    template.destroy();
  } catch {
    // node-redis 5 throws if the client was never connected.
  }
}
