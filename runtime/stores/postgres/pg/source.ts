import type { Source } from "../connection";
import type { PgClientClass } from "./client";
import { PgConnection } from "./connection";

export function sourceOf(Client: PgClientClass, options: object): Source {
  return {
    open: (listeners) => new PgConnection(Client, options, listeners),
    openAt: (url, listeners) => new PgConnection(Client, { ...options, connectionString: url }, listeners),
  };
}
