import { join } from "node:path";
import { installed } from "../installed";
import { isMatrix } from "../../support/suites";

/** The supported versions of Node, except for this one. */
export const OTHER_NODES = isMatrix ? ["22.18.0", "22", "24", "26"] : [];

/** Installs a version of Node from npm. Returns its path. */
export async function installNode(version: string): Promise<string> {
  return join(await installed([`node@${version}`]), "node/bin/node");
}
