import { createHash } from "node:crypto";

// The scripts are TypeScript modules with the Lua text in them, and no `.lua` files: a bundler takes no file along that
// is read at run time.
//
// A script's reply is a number, or an array that begins with one, where it did what it was asked for or tells how it went.
// What a key holds stands in an array always: so no value that somebody put there is taken for an answer.

/** A script, and the name by which the server knows it once it has seen it. */
export interface Script {
  readonly source: string;
  readonly sha1: string;
}

const SOURCES = new Map<string, string>();

export function script(...parts: readonly string[]): Script {
  const source = parts.join("");
  const sha1 = createHash("sha1").update(source).digest("hex");
  SOURCES.set(sha1, source);
  return { source, sha1 };
}

/** Of a script of ours. */
export function sourceOf(sha1: string): string | undefined {
  return SOURCES.get(sha1);
}
