import type { LoadHook } from "node:module";
import { loadFile, pathOf } from "./load-file";

// For older versions of Node, which ask the hooks of `import` in a thread of their own.

export const load: LoadHook = async (url, context, next) => {
  const path = pathOf(url);
  const loaded = path === undefined ? undefined : loadFile(path, context.format);
  if (loaded === undefined) return await next(url, context);
  if (loaded.format === "module") return { ...loaded, shortCircuit: true };
  const result = await next(url, context);
  // CommonJS of which nobody knows the source yet comes back by the hook of `require`.
  return result.source == null ? result : { ...result, source: loaded.source };
};
