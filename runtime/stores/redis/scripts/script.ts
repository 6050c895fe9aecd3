import { loadCrypto } from "../../../node-crypto";

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

class NamedWhenUsed implements Script {
  readonly source: string;
  #sha1: string | undefined;

  constructor(source: string) {
    this.source = source;
  }

  get sha1(): string {
    if (this.#sha1 !== undefined) return this.#sha1;
    this.#sha1 = loadCrypto().createHash("sha1").update(this.source).digest("hex");
    SOURCES.set(this.#sha1, this.source);
    return this.#sha1;
  }
}

export function script(...parts: readonly string[]): Script {
  return new NamedWhenUsed(parts.join(""));
}

/** Of a script of ours that was sent. */
export function sourceOf(sha1: string): string | undefined {
  return SOURCES.get(sha1);
}
