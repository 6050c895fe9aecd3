import type { Route } from "../route";

/** Leads the address of each server to a route, for the option of a client library. */
export function natMapOf(
  ports: readonly number[],
  routes: readonly Route[],
): Record<string, { readonly host: string; readonly port: number }> {
  return Object.fromEntries(
    ports.map((port, nth) => [`127.0.0.1:${port}`, { host: "127.0.0.1", port: routes[nth]?.port ?? port }]),
  );
}
