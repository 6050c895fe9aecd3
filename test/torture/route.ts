import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** The network between one process and one server. */
export interface Route {
  readonly port: number;
  /** Leads new connections to another server. */
  moveTo(serverPort: number): void;
  /** Drops all data on the open connections from now on, without closing them. New connections work. */
  silence(): void;
  /** Drops the replies on the open connections from now on. The server still gets the commands. */
  loseReplies(): void;
  /** Resets the connections that drop data, as the kernel eventually does. */
  breakSilent(): void;
  /** Resets all connections. */
  reset(): void;
  /** Keeps all data from now on. Returns a function that delivers it, as after a TCP retransmission. */
  delay(): () => void;
  /** Returns a function that sends the last commands of each connection to the server once more, over another connection. */
  repeat(): () => void;
  stop(): Promise<void>;
}

type Direction = "commands" | "replies";

/** The number of chunks of commands that a connection remembers, so that they can be repeated. */
const REMEMBERED = 20;

interface Connection {
  readonly ends: readonly Socket[];
  readonly lost: Set<Direction>;
  /** What is to be delivered later, in order. */
  held: (() => void)[] | undefined;
  readonly lastCommands: Buffer[];
}

export async function openRoute(firstServerPort: number): Promise<Route> {
  let serverPort = firstServerPort;
  const connections = new Set<Connection>();
  const repeating = new Set<Socket>();
  const proxy = createServer((client) => {
    const server = connect(serverPort, "127.0.0.1");
    const connection: Connection = {
      ends: [client, server],
      lost: new Set(),
      held: undefined,
      lastCommands: [],
    };
    connections.add(connection);
    carry(connection, "commands", client, server);
    carry(connection, "replies", server, client);
    // If one end closes a silent connection, the other end does not notice until the route breaks.
    const closed = (): void => {
      if (connection.ends.every(({ destroyed }) => destroyed)) connections.delete(connection);
    };
    for (const end of connection.ends) end.on("close", closed);
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const reset = (isMeant: (connection: Connection) => boolean): void => {
    for (const connection of connections) {
      if (isMeant(connection)) for (const end of connection.ends) end.resetAndDestroy();
    }
  };
  return {
    port: (proxy.address() as AddressInfo).port,
    moveTo(port) {
      serverPort = port;
    },
    silence() {
      for (const { lost } of connections) lost.add("commands").add("replies");
    },
    loseReplies() {
      for (const { lost } of connections) lost.add("replies");
    },
    breakSilent: () => reset(({ lost }) => lost.size > 0),
    reset: () => reset(() => true),
    delay() {
      const delayed = [...connections].filter(({ held }) => held === undefined);
      for (const connection of delayed) connection.held = [];
      return () => {
        for (const connection of delayed) {
          const { held = [] } = connection;
          connection.held = undefined;
          for (const deliver of held) deliver();
        }
      };
    },
    repeat() {
      const sent = [...connections].map(({ lastCommands }) => Buffer.concat(lastCommands));
      return () => {
        for (const commands of sent) {
          const socket = connect(serverPort, "127.0.0.1");
          repeating.add(socket);
          socket.on("error", () => {}); // "close" follows.
          socket.on("close", () => repeating.delete(socket));
          socket.resume(); // The replies lead nowhere.
          socket.end(commands);
        }
      };
    },
    async stop() {
      proxy.close();
      reset(() => true);
      for (const socket of repeating) socket.destroy();
      await once(proxy, "close");
    },
  };
}

function carry(connection: Connection, direction: Direction, from: Socket, to: Socket): void {
  from.on("error", () => {}); // Its "close" follows.
  from.on("data", (bytes) => {
    if (direction === "commands") remember(connection.lastCommands, bytes);
    const deliver = (): void => {
      if (!connection.lost.has(direction) && !to.destroyed) to.write(bytes);
    };
    if (connection.held === undefined) deliver();
    else connection.held.push(deliver);
  });
  from.on("close", () => {
    if (!connection.lost.has(direction)) to.destroy();
  });
}

function remember(chunks: Buffer[], bytes: Buffer): void {
  chunks.push(bytes);
  if (chunks.length > REMEMBERED) chunks.shift();
}

/** Opens a route to each of the servers. */
export async function openRoutes(serverPorts: readonly number[]): Promise<Route[]> {
  return await Promise.all(serverPorts.map(openRoute));
}
