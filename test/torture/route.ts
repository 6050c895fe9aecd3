import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** The network between one process and Redis. */
export interface Route {
  readonly port: number;
  /** Drops all data on the open connections from now on, without closing them. New connections work. */
  silence(): void;
  /** Resets the silent connections, as the kernel eventually does. */
  breakSilent(): void;
  /** Resets all connections. */
  reset(): void;
  stop(): Promise<void>;
}

interface Connection {
  readonly ends: readonly Socket[];
  isSilent: boolean;
}

export async function openRoute(serverPort: number): Promise<Route> {
  const connections = new Set<Connection>();
  const proxy = createServer((client) => {
    const server = connect(serverPort, "127.0.0.1");
    const connection: Connection = { ends: [client, server], isSilent: false };
    connections.add(connection);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.on("error", () => {}); // Its "close" follows.
      from.on("data", (bytes) => {
        if (!connection.isSilent && !to.destroyed) to.write(bytes);
      });
      from.on("close", () => {
        connections.delete(connection);
        if (!connection.isSilent) to.destroy();
      });
    }
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const reset = (isMeant: (connection: Connection) => boolean): void => {
    for (const connection of connections) {
      if (isMeant(connection)) for (const end of connection.ends) end.resetAndDestroy();
    }
  };
  return {
    port: (proxy.address() as AddressInfo).port,
    silence() {
      for (const connection of connections) connection.isSilent = true;
    },
    breakSilent: () => reset(({ isSilent }) => isSilent),
    reset: () => reset(() => true),
    async stop() {
      proxy.close();
      reset(() => true);
      await once(proxy, "close");
    },
  };
}
