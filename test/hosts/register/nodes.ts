import { join } from "node:path";
import { installed } from "../installed";
import { isMatrix } from "../../support/suites";

/** The versions of Node that are promised to work, but for this one. */
export const OTHER_NODES = isMatrix ? ["22.18.0", "22", "24", "26"] : [];

/** A Node of that version, from npm. */
export async function installNode(version: string): Promise<string> {
  return join(await installed([`node@${version}`]), "node/bin/node");
}
