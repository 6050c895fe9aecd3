import { loadCrypto } from "../../../base/node-crypto";

// The scripts are TypeScript modules that contain the Lua text, and not `.lua` files, because bundlers do not include files that are read
// at run time.
//
// The reply of a script is a number, or an array that begins with a number, if it reports success or progress. The value of a key is always
// inside an array. So no value that another program wrote to a key can pass for a result.

/** A script, and the SHA-1 by which the server finds it in its cache. */
export interface Script {
  readonly source: string;
  readonly sha1: string;
}

/** Computes the SHA-1 when it is first needed. */
class LazyScript implements Script {
  readonly source: string;
  #sha1: string | undefined;

  constructor(source: string) {
    this.source = source;
  }

  get sha1(): string {
    if (this.#sha1 !== undefined) return this.#sha1;
    this.#sha1 = loadCrypto().createHash("sha1").update(this.source).digest("hex");
    return this.#sha1;
  }
}

export function script(...parts: readonly string[]): Script {
  return new LazyScript(parts.join(""));
}
