import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** The network between the clients and Redis: it counts what clients send, and may be slow. */
export interface Wire {
  readonly port: number;
  /** Commands that clients have sent so far. */
  readonly commands: number;
  stop(): Promise<void>;
}

/**
 * Counting here, on the bytes that clients send, tells the traffic itself: `INFO commandstats` would add the
 * commands that scripts call inside Redis, and a count inside a library would need its cooperation.
 * The detour costs time, so what is counted is never timed in the same run, unless the delay is the point.
 *
 * @param delayMs how long bytes travel, each way. Timers are coarse: it is this long at least, and about a
 *   tenth to a half of a millisecond more; for all contestants alike
 */
export async function startWire(redisPort: number, delayMs = 0): Promise<Wire> {
  const sockets = new Set<Socket>();
  let commands = 0;
  const after = (action: () => void): void => {
    if (delayMs === 0) action();
    else setTimeout(action, delayMs); // Timers of one length ring in the order in which they were set.
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
    from.on("error", () => {}); // Its "close" follows.
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

/** A command is `*<arguments>\r\n`, and each argument `$<bytes>\r\n<bytes>\r\n`: the stars are counted. */
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
