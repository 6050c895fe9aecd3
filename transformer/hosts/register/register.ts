import { hookBun } from "./bun-hook";
import { hookBunWorkers } from "./bun-workers";
import { hookDenoWorkers } from "./deno-workers";
import { hookImport } from "./import-hook";
import { hookRequire } from "./require-hook";
import { hookVm } from "./vm-hook";

// `node --import lockweave/register`, `node --require lockweave/register`, and `bun --preload lockweave/register` load this file. It weaves
// the modules that this process loads.

if ("bun" in process.versions) {
  hookBun();
  hookBunWorkers();
} else {
  hookVm();
  hookRequire();
  hookImport();
  process.setSourceMapsEnabled(true);
  if ("deno" in process.versions) hookDenoWorkers();
}
