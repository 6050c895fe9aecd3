import { join } from "node:path";
import { installed } from "../installed";

/** Whether to take the time to install what is big: see `npm run test:matrix`. */
export const isMatrix = process.env["MATRIX"] !== undefined;

/** The versions of Node that are promised to work, but for this one. */
export const OTHER_NODES = isMatrix ? ["22.18.0", "22", "24", "26"] : [];

/** A Node of that version, from npm. */
export async function installNode(version: string): Promise<string> {
  return join(await installed([`node@${version}`]), "node/bin/node");
}
