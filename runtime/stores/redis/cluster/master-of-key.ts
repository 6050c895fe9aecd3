import { ConnectionClosedError, type ClusterNode, type ClusterPort } from "../client-port";
import type { Command } from "../command";
import { slotOf } from "./slots";

/** The pause before a command is sent again, if its node is not reachable, or does not serve its slot. */
export const PAUSE_MS = 100;

/** Precedes a command for a slot that is migrating to the node. */
export const ASKING: Command = { name: "asking", keys: [], args: [] };

/** Errors of a node after which another attempt may succeed. */
const MAY_PASS = /^(?:MOVED|ASK|TRYAGAIN|CLUSTERDOWN)\b/;

/** Whether the client should send the command again. If its keys are on two nodes, `Routes` sends other commands instead. */
export function mayPass(error: Error, command: Command): boolean {
  return (
    error instanceof ConnectionClosedError || (MAY_PASS.test(error.message) && !areOnTwoNodes(command, error))
  );
}

/** Whether the error says that the keys of the command are on two nodes, because their slot is migrating. */
export function areOnTwoNodes({ keys }: Command, error: unknown): boolean {
  return keys.length > 1 && error instanceof Error && /^(?:ASK|TRYAGAIN)\b/.test(error.message);
}

/** The message of the error that stands for the reply of a node that {@link isReplaced}. */
export const REPLACED = "the master of the key was replaced before it replied";

/**
 * Whether another node has become the master of the slot since a command was sent to this one. A frozen master runs all commands that it has
 * received as soon as it runs again, before it learns that it was replaced. So its replies prove nothing.
 *
 * @param owner the address of the slot's master now, as the client knows it
 * @param ownerBefore the same, when the command was sent
 */
export function isReplaced(
  node: ClusterNode,
  owner: string | undefined,
  ownerBefore: string | undefined,
): boolean {
  return owner !== undefined && owner !== ownerBefore && owner !== node.address;
}

/**
 * Sends a command once to the master of its first key, or to any master. Follows a redirection for a slot that is migrating. Resolves to a
 * reply, or to an error, which may be that there is no connection to the node.
 */
export async function sendToMaster(
  { topology, keyPrefix }: Pick<ClusterPort, "topology" | "keyPrefix">,
  command: Command,
): Promise<unknown> {
  const [key] = command.keys;
  const slot = key === undefined ? undefined : slotOf(keyPrefix + key);
  const named = (address: string | undefined): ClusterNode | undefined =>
    topology.masters().find((one) => one.address === address);
  const node = slot === undefined ? topology.masters()[0] : named(topology.addressOf(slot));
  if (node === undefined) return new ConnectionClosedError("there is no connection to the cluster node");
  const [reply] = await topology.write(node, [command]);
  if (!(reply instanceof Error)) {
    return slot !== undefined && isReplaced(node, topology.addressOf(slot), node.address)
      ? new Error(REPLACED)
      : reply;
  }
  if (!reply.message.startsWith("ASK ")) return reply;
  const [, , address = ""] = reply.message.split(" ");
  const target = named(topology.reachable(address));
  return target === undefined ? reply : (await topology.write(target, [ASKING, command]))[1];
}
