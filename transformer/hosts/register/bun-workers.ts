import { hookWorkers } from "./workers";

/** Makes each worker of Bun preload the hook, which workers do not inherit. */
export function hookBunWorkers(): void {
  const hook = require.resolve("lockweave/register");
  hookWorkers((_, [entry, options = {}]) => {
    const { preload = [] } = options as { readonly preload?: string | readonly string[] };
    return [entry, { ...options, preload: [hook, ...[preload].flat()] }];
  });
}
