import { SLOTS } from "../cluster/slots";
import type { Endpoint } from "./client";

/** Returns the address of the master of each slot, from the reply to CLUSTER SLOTS. Undefined if the reply has another form. */
export function slotsOf(reply: unknown): readonly (string | undefined)[] | undefined {
  if (!Array.isArray(reply)) return undefined;
  const slots = Array.from<string | undefined>({ length: SLOTS });
  for (const range of reply as readonly unknown[]) {
    if (!Array.isArray(range)) return undefined;
    const [first, last, master] = range as readonly unknown[];
    const address = addressOf(master);
    // GLIDE sends commands for the other slots to a node of its choice.
    if (address !== undefined) slots.fill(address, Number(first), Number(last) + 1);
  }
  return slots;
}

/** Undefined for a node that does not know how clients reach it. */
function addressOf(master: unknown): string | undefined {
  const [host, port] = Array.isArray(master) ? (master as readonly unknown[]) : [];
  return typeof host === "string" && host !== "" && host !== "?" ? `${host}:${String(port)}` : undefined;
}

/** Returns an address, `host:port`, in the form of GLIDE. */
export function endpointOf(address: string): Endpoint {
  const colon = address.lastIndexOf(":");
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}
