import { join } from "node:path";
import { isMatrix } from "../../support/suites";
import { installed } from "../installed";

/** The supported versions of Node, except for this one. */
export const OTHER_NODES = isMatrix ? (["22-oldest", "22", "24", "26"] as const) : [];

/** Installs a version of Node from npm. Returns its path. */
export async function installNode(version: (typeof OTHER_NODES)[number]): Promise<string> {
  return join(await installed(`node-${version}`), "node/bin/node");
}
