import lockweave = require("../bundlers/esbuild");

/** The part of Bun's global that is used here. */
interface Bun {
  plugin(plugin: ReturnType<typeof lockweave>): void;
}

/** Lets Bun load tagged files as its plugin makes them. Bun has no hooks like those of Node. */
export function hookBun(): void {
  (globalThis as unknown as { readonly Bun: Bun }).Bun.plugin(lockweave());
}
