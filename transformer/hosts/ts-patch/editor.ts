import { basename } from "node:path";

// A TypeScript on which `ts-patch install` was run serves editors, too. They want the file as it stands there: what
// they ask of a place in woven text would be answered for another place.

let isServing = false;

/** From now on this process answers an editor. */
export function serveEditor(): void {
  isServing = true;
}

export function isEditor(): boolean {
  return isServing || /^_?tsserver(?:\.js)?$/.test(basename(process.argv[1] ?? ""));
}
