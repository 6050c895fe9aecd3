import type { PostgresLibrary } from "../library";
import type { PgClientClass } from "./client";
import { sourceOf } from "./source";

/** @param pg all exports of the package */
export function libraryOf(pg: unknown): PostgresLibrary | undefined {
  const Client = clientIn(pg) ?? clientIn((pg as { readonly default?: unknown } | undefined)?.default);
  if (Client === undefined) return undefined;
  return { at: (url) => sourceOf(Client, { connectionString: url }) };
}

function clientIn(exports: unknown): PgClientClass | undefined {
  const { Client } = (exports ?? {}) as { readonly Client?: PgClientClass };
  return typeof Client === "function" ? Client : undefined;
}
