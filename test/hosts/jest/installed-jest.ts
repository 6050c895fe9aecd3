import { installed } from "../installed";

const PACKAGES = [
  "jest@30",
  "ts-jest@29",
  "babel-jest@30",
  "@babel/core@7",
  "@babel/preset-env@7",
  "@babel/preset-typescript@7",
  "@swc/core@1",
  "@swc/jest@0.2",
  "typescript@6.0.3",
];

/** Installs Jest and the packages of its transformers. Returns the path of `node_modules`. */
export function installedJest(): Promise<string> {
  return installed(PACKAGES, "jest-30");
}
