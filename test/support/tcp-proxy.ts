import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { deferred, type Deferred } from "./deferred";
import { RespStream } from "./resp";

/** A proxy between Redis clients and their server, whose faults the test controls. */
export interface TcpProxy {
  readonly port: number;
  /** The number of bytes that the clients have sent. */
  readonly bytesSent: number;
  /** Withholds all replies from now on. */
  withholdReplies(): void;
  /** Withholds commands and replies from now on. No connection breaks, and new ones can be made. */
  blackHole(): void;
  /** Ends `withholdReplies` and `blackHole`. The withheld data arrives now, as after a TCP retransmission. */
  heal(): void;
  /**
   * Loses all data on the current connections, without an error on either side. New connections use another route, which
   * works.
   */
  loseRoute(): void;
  /** The commands that were lost by `loseRoute`. */
  readonly lostCommands: readonly (readonly string[])[];
  /** The current connections lead to a server that has become a replica, and new connections to its new master. */
  demote(): void;
  /**
   * Withholds replies on the current connections until a newer connection sends its second PING. After a pause, Redis
   * replies to its clients in any order, but to all of them before it reads the next command.
   */
  answerNewConnectionsFirst(): void;
  /** The number of connections that the clients have made. */
  readonly connectionsMade: number;
  /** Delays all replies from now on. */
  delayReplies(ms: number): void;
  /**
   * Sets the fate of the n-th lock command from now on, on any connection. Other commands, including those that set up a
   * connection, are forwarded.
   *
   * @param key the key of the lock; the default is any lock
   * @returns a promise that resolves when it has happened
   */
  strike(nth: number, fate: Fate, key?: string): Promise<void>;
  /** Breaks all connections. New connections work in both directions. */
  cut(): void;
  /** Breaks all connections with a TCP reset, which also loses data in flight. */
  reset(): void;
  stop(): Promise<void>;
}

/**
 * `reset`: Redis runs the command, and the connection is reset instead of the reply. `silence`: Redis runs the command, and
 * the connection delivers nothing from the reply on, until `heal`, `cut`, or `reset`. `answer`: the proxy replies itself, and
 * Redis never gets the command.
 */
export type Fate = "reset" | "silence" | { readonly answer: string };

export async function startTcpProxy(serverPort: number): Promise<TcpProxy> {
  const network = new Network();
  const proxy = createServer((client) => network.add(client, connect(serverPort, "127.0.0.1")));
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return {
    port: (proxy.address() as AddressInfo).port,
    get bytesSent() {
      return network.bytesSent;
    },
    withholdReplies() {
      network.holdsReplies = true;
    },
    blackHole() {
      network.holdsReplies = true;
      network.holdsCommands = true;
    },
    heal: () => network.heal(),
    loseRoute: () => network.loseRoute(),
    lostCommands: network.lostCommands,
    demote: () => network.demote(),
    answerNewConnectionsFirst: () => network.answerNewConnectionsFirst(),
    get connectionsMade() {
      return network.connectionsMade;
    },
    delayReplies(ms) {
      network.replyDelayMs = ms;
    },
    strike: (nth, fate, key) => network.strike(nth, fate, key),
    cut: () => network.break((socket) => socket.destroy()),
    reset: () => network.break((socket) => socket.resetAndDestroy()),
    async stop() {
      proxy.close();
      network.break((socket) => socket.destroy());
      await once(proxy, "close");
    },
  };
}

interface Strike {
  /** The number of matching commands until the strike. */
  nth: number;
  readonly fate: Fate;
  readonly key: string | undefined;
  readonly happened: Deferred<void>;
}

class Network {
  bytesSent = 0;
  connectionsMade = 0;
  holdsCommands = false;
  holdsReplies = false;
  replyDelayMs = 0;
  readonly lostCommands: (readonly string[])[] = [];
  readonly #connections = new Set<Connection>();
  readonly #strikes = new Set<Strike>();

  add(client: Socket, server: Socket): void {
    const connection = new Connection(this, client, server);
    this.connectionsMade += 1;
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
    this.holdsCommands = false;
    this.holdsReplies = false;
    for (const connection of this.#connections) connection.heal();
  }

  loseRoute(): void {
    for (const connection of this.#connections) connection.isLost = true;
  }

  demote(): void {
    for (const connection of this.#connections) connection.isDemoted = true;
  }

  answerNewConnectionsFirst(): void {
    for (const connection of this.#connections) connection.isLate = true;
  }

  releaseLate(): void {
    for (const connection of this.#connections) if (connection.isLate) connection.heal();
  }

  break(end: (socket: Socket) => void): void {
    this.holdsCommands = false;
    this.holdsReplies = false;
    for (const connection of this.#connections) connection.end(end);
  }

  strike(nth: number, fate: Fate, key: string | undefined): Promise<void> {
    const happened = deferred();
    this.#strikes.add({ nth, fate, key, happened });
    return happened.promise;
  }

  /** Returns the strike for this command, if there is one. */
  struck(command: readonly string[]): Strike | undefined {
    const [, ...words] = command;
    if (!isAboutLocks(command)) return undefined;
    for (const strike of this.#strikes) {
      if (strike.key !== undefined && !words.includes(strike.key)) continue;
      strike.nth -= 1;
      if (strike.nth > 0) continue;
      this.#strikes.delete(strike);
      return strike;
    }
    return undefined;
  }
}

class Connection {
  isLost = false;
  isDemoted = false;
  isLate = false;
  readonly #network: Network;
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #commands = new RespStream();
  readonly #replies = new RespStream();
  /** One entry for each command without a reply, in order. */
  readonly #unanswered: (Strike | undefined)[] = [];
  #heldCommands: Buffer[] = [];
  #heldReplies: Buffer[] = [];
  #isDumb = false;
  #pings = 0;

  constructor(network: Network, client: Socket, server: Socket) {
    this.#network = network;
    this.#client = client;
    this.#server = server;
    client.on("data", (data) => this.#fromClient(data));
    server.on("data", (data) => this.#fromServer(data));
  }

  heal(): void {
    this.#isDumb = false;
    this.isLate = false;
    const [commands, replies] = [this.#heldCommands, this.#heldReplies];
    [this.#heldCommands, this.#heldReplies] = [[], []];
    for (const bytes of commands) this.#server.write(bytes);
    for (const bytes of replies) this.#client.write(bytes);
  }

  end(end: (socket: Socket) => void): void {
    end(this.#client);
    this.#server.destroy();
  }

  /** The client may give up before the replies. Then these are lost, too. */
  closed(): void {
    for (const strike of this.#unanswered) strike?.happened.resolve();
  }

  #fromClient(data: Buffer): void {
    this.#network.bytesSent += data.length;
    for (const { bytes, words } of this.#commands.cut(data)) {
      if (this.isLost) {
        this.#network.lostCommands.push(words);
        continue;
      }
      if (/^ping$/i.test(words[0] ?? "")) this.#pings += 1;
      if (this.#pings === 2 && !this.isLate) this.#network.releaseLate();
      const strike = this.isDemoted && isAboutLocks(words) ? readOnly() : this.#network.struck(words);
      if (!isSubscription(words)) this.#unanswered.push(strike);
      if (typeof strike?.fate === "object") this.#answerWhatIsOurs();
      else if (this.#network.holdsCommands) this.#heldCommands.push(bytes);
      else this.#server.write(bytes);
    }
  }

  #fromServer(data: Buffer): void {
    if (this.isLost) return;
    for (const { bytes, words } of this.#replies.cut(data)) {
      const strike = isSubscription(words) ? undefined : this.#unanswered.shift();
      if (strike !== undefined) strike.happened.resolve();
      if (strike?.fate === "reset") return this.end((socket) => socket.resetAndDestroy());
      if (strike?.fate === "silence") this.#isDumb = true;
      this.#tell(bytes);
      this.#answerWhatIsOurs();
    }
  }

  /** Sends the proxy's own replies in order, because Redis replies to commands in order. */
  #answerWhatIsOurs(): void {
    for (let [strike] = this.#unanswered; typeof strike?.fate === "object"; [strike] = this.#unanswered) {
      this.#unanswered.shift();
      strike.happened.resolve();
      this.#tell(Buffer.from(strike.fate.answer));
    }
  }

  #tell(bytes: Buffer): void {
    const { replyDelayMs } = this.#network;
    // Timers with the same delay run in the order in which they were set.
    if (replyDelayMs > 0) setTimeout(() => this.#tellNow(bytes), replyDelayMs);
    else this.#tellNow(bytes);
  }

  #tellNow(bytes: Buffer): void {
    if (this.#isDumb || this.isLate || this.#network.holdsReplies) this.#heldReplies.push(bytes);
    else if (!this.#client.destroyed) this.#client.write(bytes);
  }
}

function isAboutLocks([name = ""]: readonly string[]): boolean {
  return /^(set|eval|evalsha|pttl)$/i.test(name);
}

function readOnly(): Strike {
  const answer = "-READONLY You can't write against a read only replica.\r\n";
  return { nth: 1, fate: { answer }, key: undefined, happened: deferred() };
}

/** Whether this is a confirmation or message of a subscription, and not a reply. */
function isSubscription([name = ""]: readonly string[]): boolean {
  return /^s?(un)?subscribe$|^s?message$/i.test(name);
}
