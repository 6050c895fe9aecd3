import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { deferred, type Deferred } from "./deferred";
import { RespStream } from "./resp";

/** The network between Redis clients and their server, and the test's hand on it. */
export interface TcpProxy {
  readonly port: number;
  /** How many bytes the clients have sent. */
  readonly bytesSent: number;
  /** From now on the server's words do not reach the client. */
  withholdReplies(): void;
  /** From now on nothing reaches anybody, and no connection breaks for it. New ones are made all the same. */
  blackHole(): void;
  /** Ends both: what was kept back arrives now, as it does when TCP sends it again. */
  heal(): void;
  /**
   * The route of the connections of now is dead: what either side sends is lost, and neither is told. New ones are made
   * over another route, which works.
   */
  loseRoute(): void;
  /** The commands that were lost by `loseRoute`. */
  readonly lostCommands: readonly (readonly string[])[];
  /** The connections of now lead to what has become a replica, and new ones to its new master. */
  demote(): void;
  /**
   * From now on the server's words reach the connections of now only when a newer one sends its second PING: after a pause,
   * Redis writes to its clients in any order, but to all of them before it reads the next command.
   */
  answerNewConnectionsFirst(): void;
  /** How many connections the clients have made. */
  readonly connectionsMade: number;
  /** From now on the server's words take so much longer. */
  delayReplies(ms: number): void;
  /**
   * What becomes of the n-th command from now on that is about a lock, whichever connection it is on. The
   * others on the way there, and those by which a client sets up its connection, are left alone.
   *
   * @param key of which lock; by default of any
   * @returns resolves when it happened
   */
  strike(nth: number, fate: Fate, key?: string): Promise<void>;
  /** Breaks all connections, and forwards again, in both directions, on those that are made afterwards. */
  cut(): void;
  /** The same with a TCP reset, by which what is still on its way is lost, too. */
  reset(): void;
  stop(): Promise<void>;
}

/**
 * `reset`: Redis carries it out, and the connection is reset instead of the reply. `silence`: Redis carries it
 * out, and the connection is dumb from the reply on, until `heal`, `cut` or `reset`. An answer is given in
 * the place of Redis, which never hears of the command.
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
  /** How many such commands are still to come. */
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

  /** What is to become of this command. */
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
  /** One for each command that has no reply yet, in their order. */
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

  /** In its turn: Redis answers in the order in which it was asked. */
  #answerWhatIsOurs(): void {
    for (let [strike] = this.#unanswered; typeof strike?.fate === "object"; [strike] = this.#unanswered) {
      this.#unanswered.shift();
      strike.happened.resolve();
      this.#tell(Buffer.from(strike.fate.answer));
    }
  }

  #tell(bytes: Buffer): void {
    const { replyDelayMs } = this.#network;
    // Timers of one delay run in the order in which they were set.
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

/** What is subscribed to is confirmed, and comes, without being a reply. */
function isSubscription([name = ""]: readonly string[]): boolean {
  return /^(un)?subscribe$|^message$/i.test(name);
}
