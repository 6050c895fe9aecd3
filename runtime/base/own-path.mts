/** Returns the path of this copy of the package. A bundler may leave none. */
export function ownPath(): string {
  const { url } = import.meta as { readonly url?: string };
  if (url?.startsWith("file:") !== true) return "a bundle";
  return process.getBuiltinModule("node:url").fileURLToPath(url);
}
