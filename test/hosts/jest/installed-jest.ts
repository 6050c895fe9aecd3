import { installed } from "../installed";

/** Installs Jest and the packages of its transformers. Returns the path of `node_modules`. */
export function installedJest(): Promise<string> {
  return installed("jest-30");
}
