import type { PostgresPort } from "../../../runtime/stores/postgres/client-port";
import type { RenewRequest, Store } from "../../../runtime/stores/port";
import { readStatement } from "./database";
import type { GroupRow } from "./lease-rows";
import type { SimulatedPostgres } from "./server";

/** Checks that a process renews a group only if it renews each hold in it. Otherwise a hold that nobody renews could live on. */
export class WholeGroups {
  readonly #server: SimulatedPostgres;
  /** The requests of the renewals that are under way. */
  readonly #underWay = new Set<readonly RenewRequest[]>();

  constructor(server: SimulatedPostgres) {
    this.#server = server;
  }

  /** Returns the store with renewals that this class knows of. */
  ofStore(store: Store): Store {
    return {
      ...store,
      renew: async (requests, timeoutMs) => {
        this.#underWay.add(requests);
        try {
          return await store.renew(requests, timeoutMs);
        } finally {
          this.#underWay.delete(requests);
        }
      },
    };
  }

  /** Returns the port with statements that this class checks. */
  ofPort(port: PostgresPort): PostgresPort {
    return {
      query: (text, values, timeoutMs) => {
        if (text.includes("renew_groups_v1")) {
          const statement = readStatement(text, values);
          const requests = statement.kind === "command" ? statement.requests : [];
          for (const request of requests) this.#check(request as GroupRow);
        }
        return port.query(text, values, timeoutMs);
      },
      listen: (channel, listeners) => port.listen(channel, listeners),
      close: () => port.close(),
    };
  }

  #check({ id, ended }: GroupRow): void {
    const { database, report } = this.#server;
    const wanted = new Set([...this.#underWay].flat().map(({ requestId }) => requestId));
    const known = new Set(ended.map(({ request_id: requestId }) => requestId));
    for (const { key, holder, isRevoked } of database.rows.membersOf(id)) {
      if (!isRevoked && !wanted.has(holder) && !known.has(holder))
        report(`a group with ${holder} was renewed, and nobody renews that hold of ${key}`);
    }
  }
}
