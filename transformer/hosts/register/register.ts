import { hookImport } from "./import-hook";
import { hookRequire } from "./require-hook";

// `node --import lockweave/register`, or `--require`: weaves what this process loads.

hookRequire();
hookImport();
process.setSourceMapsEnabled(true);
