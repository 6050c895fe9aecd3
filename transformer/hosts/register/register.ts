import { hookBun } from "./bun-hook";
import { hookImport } from "./import-hook";
import { hookRequire } from "./require-hook";

// `node --import lockweave/register`, or `--require`, or `bun --preload`: weaves what this process loads.

if ("bun" in process.versions) {
  hookBun();
} else {
  hookRequire();
  hookImport();
  process.setSourceMapsEnabled(true);
}
