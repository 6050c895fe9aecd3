import { join } from "node:path";
import test from "ava";

// Client libraries that are not development dependencies. `test/matrix/clients.ts` installs them, and runs their tests.

const folder = process.env["CLIENTS_FROM"];

export const hasOtherClients = folder !== undefined;

/** For a test that needs one of these libraries. */
export const withOtherClients = hasOtherClients ? test : test.skip;

/** Returns the directory of an installed package, or of a scope. */
export function installedClient(name: string): string {
  return join(folder ?? "", "node_modules", name);
}
