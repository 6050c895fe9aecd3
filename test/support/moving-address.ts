import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** An address that leads to one server after another, such as a load balancer that follows the primary. */
export interface MovingAddress {
  readonly port: number;
  /** Leads new connections to this port. The connections that exist stay where they are. */
  moveTo(port: number): void;
  /** Breaks all connections that exist. */
  cut(): void;
  stop(): Promise<void>;
}

export async function startMovingAddress(firstPort: number): Promise<MovingAddress> {
  let target = firstPort;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on("error", () => {}); // "close" follows.
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = (): void => sockets.forEach((socket) => socket.destroy());
  return {
    port: (server.address() as AddressInfo).port,
    moveTo(port) {
      target = port;
    },
    cut,
    async stop() {
      const closed = once(server, "close");
      server.close();
      cut();
      await closed;
    },
  };
}
