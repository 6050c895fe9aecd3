import type { Socket } from "node:net";
import type { ParsedOptions } from "./client";

/** The hosts of a server, which all connections to it share. */
export interface Hosts {
  /** The number of the host that a new connection tries first. */
  first: number;
}

/**
 * Opens the sockets of one connection. postgres.js would open them itself, but then nobody could destroy a socket whose server is silent, and
 * it would keep the process alive.
 */
export class Sockets {
  readonly #given: ParsedOptions["socket"];
  readonly #hosts: Hosts;
  /** The host that comes first in the next attempt. The library tries again if it needs a primary and the server is a standby, or the reverse. */
  #nextHost: number;
  #socket: Socket | undefined;
  #isDestroyed = false;

  /** @param given opens the sockets, if the application has such a function */
  constructor(given: ParsedOptions["socket"], hosts: Hosts) {
    this.#given = given;
    this.#hosts = hosts;
    this.#nextHost = hosts.first;
  }

  /** Resolves to a socket that is connected. */
  async open(options: ParsedOptions): Promise<Socket> {
    if (this.#given !== undefined) return this.#keep(await this.#given(options));
    if (options.path !== false && options.path !== "") return await this.#connect({ path: options.path });
    let failure: unknown;
    for (let attempt = 0; attempt < options.host.length; attempt += 1) {
      const nth = this.#nextHost++ % options.host.length;
      const [host = "localhost", port = 5432] = [options.host[nth], options.port[nth]];
      try {
        const socket = await this.#connect({ host, port });
        return Object.assign(socket, { host }); // The library checks the certificate against this name.
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  /** Makes other connections try the next host first, because this one accepts no connection, or does not answer. */
  giveUpHost(): void {
    this.#hosts.first = this.#nextHost;
  }

  destroy(): void {
    this.#isDestroyed = true;
    this.#socket?.destroy();
  }

  #connect(address: { path: string } | { host: string; port: number }): Promise<Socket> {
    if (this.#isDestroyed) throw new Error("the connection is closed");
    const { connect } = process.getBuiltinModule("node:net");
    const socket = this.#keep(connect({ ...address, noDelay: true }));
    return new Promise((resolve, reject) => {
      const fail = (error: Error): void => reject(error);
      socket.once("error", fail).once("close", () => fail(new Error("the connection is closed")));
      socket.once("connect", () => {
        socket.off("error", fail);
        resolve(socket);
      });
    });
  }

  #keep(socket: Socket): Socket {
    this.#socket = socket;
    if (this.#isDestroyed) socket.destroy();
    return socket;
  }
}
