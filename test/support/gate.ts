import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A server that each body calls when it begins. The body ends when the server responds. */
export class Gate {
  begun = 0;
  readonly #leave: (() => void)[] = [];
  readonly #server = createServer((_, response) => {
    this.begun += 1;
    this.#leave.push(() => response.end());
  });

  static async open(): Promise<Gate> {
    const gate = new Gate();
    gate.#server.listen(0, "127.0.0.1");
    await once(gate.#server, "listening");
    return gate;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  letOneOut(): void {
    this.#leave.shift()?.();
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
