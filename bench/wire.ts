import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** A proxy between the clients and Redis. It counts the commands of clients, and can delay them. */
export interface Wire {
  readonly port: number;
  /** The number of commands that clients have sent so far. */
  readonly commands: number;
  stop(): Promise<void>;
}

/**
 * Starts a proxy. Counting the bytes that clients send measures the traffic itself. `INFO commandstats` would add the commands that scripts
 * call inside Redis, and counting inside a library would need its cooperation. The proxy costs time, so a run that counts is never timed,
 * unless the delay is the purpose.
 *
 * @param delayMs how long bytes travel each way. Timers are coarse, so the delay is longer by a tenth to a half of a millisecond, for all
 * contestants alike.
 */
export async function startWire(redisPort: number, delayMs = 0): Promise<Wire> {
  const sockets = new Set<Socket>();
  let commands = 0;
  const after = (action: () => void): void => {
    if (delayMs === 0) action();
    else setTimeout(action, delayMs); // Timers of the same length fire in the order in which they were set.
  };
  const server = createServer((client) => {
    const redis = connect(redisPort, "127.0.0.1");
    const count = commandCounter();
    client.on("data", (bytes) => (commands += count(bytes)));
    join(client, redis);
    join(redis, client);
  });
  const join = (from: Socket, to: Socket): void => {
    sockets.add(from);
    from.setNoDelay(true);
    from.on("error", () => {}); // The event "close" follows.
    from.on("data", (bytes) => after(() => to.write(bytes)));
    from.on("close", () => {
      sockets.delete(from);
      after(() => to.destroy());
    });
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    get commands() {
      return commands;
    },
    async stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}

/**
 * Counts the commands in a stream. A command is `*<arguments>\r\n`, and each argument is `$<bytes>\r\n<bytes>\r\n`, so this counts the
 * stars.
 */
function commandCounter(): (bytes: Buffer) => number {
  let isBulk = false;
  let length = 0;
  let payloadLeft = 0;
  return (bytes) => {
    let commands = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      if (payloadLeft > 0) {
        const skipped = Math.min(payloadLeft, bytes.length - at);
        payloadLeft -= skipped;
        at += skipped - 1;
        continue;
      }
      const byte = bytes[at] ?? 0;
      if (byte === STAR) {
        commands += 1;
        isBulk = false;
      } else if (byte === DOLLAR) {
        isBulk = true;
        length = 0;
      } else if (byte === LINE_FEED && isBulk) {
        payloadLeft = length + "\r\n".length;
      } else if (byte >= ZERO && byte <= NINE) {
        length = 10 * length + (byte - ZERO);
      }
    }
    return commands;
  };
}

const [STAR, DOLLAR, LINE_FEED, ZERO, NINE] = [0x2a, 0x24, 0x0a, 0x30, 0x39] as const;
