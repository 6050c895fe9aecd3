import type { LoadHook } from "node:module";
import { loadFile, pathOf } from "./load-file";

// The hooks for older versions of Node, which run the hooks of `import` in a separate thread.

export const load: LoadHook = async (url, context, next) => {
  const path = pathOf(url);
  const loaded = path === undefined ? undefined : loadFile(path, context.format);
  if (loaded === undefined) return await next(url, context);
  if (loaded.format === "module") return { ...loaded, shortCircuit: true };
  const result = await next(url, context);
  // If the hooks return no source for CommonJS, Node loads the file through `require`, where our hook weaves it.
  return result.source == null ? result : { ...result, source: loaded.source };
};
