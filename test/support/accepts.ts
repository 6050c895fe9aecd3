import { connect } from "node:net";

/** Whether a server on loopback accepts connections at this port. */
export async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  return await new Promise<boolean>((resolve) => {
    socket.once("error", () => resolve(false)).once("connect", () => resolve(true));
  }).finally(() => socket.destroy());
}
