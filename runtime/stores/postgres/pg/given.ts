import type { Source } from "../connection";
import type { PgPoolFields } from "./client";
import { sourceOf } from "./source";

/** Whether it is a `Pool` of `pg`, or of a package with the same classes. */
export function isPgPool(client: unknown): boolean {
  const { Client, options, totalCount } = (client ?? {}) as Partial<PgPoolFields & { totalCount: number }>;
  return typeof Client === "function" && typeof options === "object" && typeof totalCount === "number";
}

/** Returns a source of connections to the server of the pool. Does not change the pool. */
export function besidePgPool(pool: unknown): Source {
  const { Client, options } = pool as PgPoolFields;
  // The pool hides the password from a copy of its options.
  return sourceOf(Client, { ...options, password: options["password"] });
}
