import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { deferred, type Deferred } from "./deferred";
import type { TcpProxy } from "./tcp-proxy";

/**
 * A proxy between PostgreSQL clients and their server, with the same faults as the one for Redis. A strike needs a key: it concerns the
 * statements that contain it.
 */
export interface PostgresProxy extends Pick<
  TcpProxy,
  "port" | "blackHole" | "delayReplies" | "heal" | "cut" | "reset" | "stop"
> {
  strike(nth: number, fate: "reset" | "silence", key: string): Promise<void>;
}

export async function startPostgresProxy(serverPort: number): Promise<PostgresProxy> {
  const network = new Network();
  const proxy = createServer((client) => network.add(client, connect(serverPort, "127.0.0.1")));
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return {
    port: (proxy.address() as AddressInfo).port,
    blackHole: () => void (network.isSilent = true),
    delayReplies: (ms) => void (network.replyDelayMs = ms),
    heal: () => network.heal(),
    cut: () => network.break((socket) => socket.destroy()),
    reset: () => network.break((socket) => socket.resetAndDestroy()),
    strike: (nth, fate, key) => network.strike(nth, fate, key),
    async stop() {
      proxy.close();
      network.break((socket) => socket.destroy());
      await once(proxy, "close");
    },
  };
}

interface Strike {
  /** The number of statements with the key until the strike. */
  nth: number;
  readonly fate: "reset" | "silence";
  readonly key: string;
  readonly happened: Deferred<void>;
}

class Network {
  isSilent = false;
  replyDelayMs = 0;
  readonly #connections = new Set<Connection>();
  readonly #strikes = new Set<Strike>();

  add(client: Socket, server: Socket): void {
    const connection = new Connection(this, client, server);
    this.#connections.add(connection);
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      socket.on("error", () => {}); // Its "close" follows.
      socket.on("close", () => {
        this.#connections.delete(connection);
        connection.closed();
        other.destroy();
      });
    }
  }

  heal(): void {
    this.isSilent = false;
    for (const connection of this.#connections) connection.heal();
  }

  break(end: (socket: Socket) => void): void {
    this.isSilent = false;
    for (const connection of this.#connections) connection.end(end);
  }

  strike(nth: number, fate: Strike["fate"], key: string): Promise<void> {
    const happened = deferred();
    this.#strikes.add({ nth, fate, key, happened });
    return happened.promise;
  }

  /** Returns the strike for this statement, if there is one. The client sends a statement and its values at once. */
  struck(statement: Buffer): Strike | undefined {
    for (const strike of this.#strikes) {
      if (!hasKey(statement, strike.key)) continue;
      strike.nth -= 1;
      if (strike.nth > 0) continue;
      this.#strikes.delete(strike);
      return strike;
    }
    return undefined;
  }
}

/** Whether the statement has the key in its JSON, as a literal, or as a value of its own, which begins with its length. */
function hasKey(statement: Buffer, key: string): boolean {
  const length = Buffer.alloc(4);
  length.writeInt32BE(Buffer.byteLength(key));
  const spellings = [`"${key}"`, `'${key}'`, Buffer.concat([length, Buffer.from(key)])];
  return spellings.some((spelling) => statement.includes(spelling));
}

class Connection {
  readonly #network: Network;
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #held: (() => void)[] = [];
  #strike: Strike | undefined;
  #isDumb = false;

  constructor(network: Network, client: Socket, server: Socket) {
    this.#network = network;
    this.#client = client;
    this.#server = server;
    client.on("data", (data) => this.#pass(() => this.#toServer(data)));
    server.on("data", (data) => this.#delay(() => this.#toClient(data)));
  }

  heal(): void {
    this.#isDumb = false;
    for (const pass of this.#held.splice(0)) pass();
  }

  end(end: (socket: Socket) => void): void {
    end(this.#client);
    this.#server.destroy();
  }

  /** The client may give up before the reply. Then that reply is lost, too. */
  closed(): void {
    this.#strike?.happened.resolve();
  }

  #toServer(data: Buffer): void {
    this.#strike ??= this.#network.struck(data);
    this.#server.write(data);
  }

  #delay(pass: () => void): void {
    const { replyDelayMs } = this.#network;
    // Timers with the same delay run in the order in which they were set.
    if (replyDelayMs > 0) setTimeout(pass, replyDelayMs);
    else pass();
  }

  #toClient(data: Buffer): void {
    if (this.#client.destroyed) return;
    const strike = this.#strike;
    this.#strike = undefined;
    strike?.happened.resolve();
    if (strike?.fate === "reset") return this.end((socket) => socket.resetAndDestroy());
    if (strike?.fate === "silence") this.#isDumb = true;
    if (this.#isDumb) this.#held.push(() => this.#client.write(data));
    else this.#pass(() => this.#client.write(data));
  }

  #pass(pass: () => void): void {
    if (this.#network.isSilent) this.#held.push(pass);
    else pass();
  }
}
