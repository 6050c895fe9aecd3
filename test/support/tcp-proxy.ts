import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** The network between a client and a server, and the test's hand on it. */
export interface TcpProxy {
  readonly port: number;
  /** From now on the server's words do not reach the client. */
  withholdReplies(): void;
  /** Breaks all connections, and forwards again, in both directions, on those that are made afterwards. */
  cut(): void;
  stop(): Promise<void>;
}

export async function startTcpProxy(serverPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let withholding = false;
  const proxy = createServer((client) => {
    const server = connect(serverPort, "127.0.0.1");
    client.pipe(server);
    server.on("data", (data) => {
      if (!withholding) client.write(data);
    });
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => {}); // Its "close" follows.
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  });
  const cut = (): void => {
    withholding = false;
    for (const socket of sockets) socket.destroy();
  };
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return {
    port: (proxy.address() as AddressInfo).port,
    withholdReplies: () => {
      withholding = true;
    },
    cut,
    async stop() {
      proxy.close();
      cut();
      await once(proxy, "close");
    },
  };
}
