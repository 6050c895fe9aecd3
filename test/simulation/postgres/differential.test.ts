import test from "ava";
import * as fc from "fast-check";
import { compare, HistoryPlayer, historiesWithGuards, type Step, type Subject } from "../history";
import { inMatrixSerially, isMatrix, outsideMatrixSerially } from "../../support/suites";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import { LeaseDatabase, readStatement } from "./database";
import type { LeaseFunctions } from "./lease-functions";
import type { Hold, LeaseRows } from "./lease-rows";
import { portOver, storesOver, TimedPostgres } from "./timed-postgres";

// The simulation runs over a model of the rows and functions. Here random histories show that PostgreSQL does the same, step by step: its
// replies, its notifications, its guards, and its rows. A history with a difference is printed. To run it again:
//   SEED=123 npx ava test/simulation/postgres/differential.test.ts

const HISTORIES = isMatrix ? 100 : 8;
const SEED = Number(process.env["SEED"] ?? 1);
const STARTS_AT_MS = 1_700_000_000_000;

let server: PostgresServer;
let postgres: TimedPostgres;

test.before(async () => {
  server = await startPostgres("fsync=off");
  postgres = await TimedPostgres.start(server);
});

test.after.always(async () => {
  await postgres.close();
  await server.stop();
});

/** Plants a fault in the model. */
type Fault = (rows: LeaseRows, functions: LeaseFunctions) => void;

function inModel(fault: Fault): Subject {
  let now = STARTS_AT_MS;
  const wakeUps: string[] = [];
  const database = new LeaseDatabase({
    now: () => now,
    epochMicroseconds: () => now * 1_000,
    random: () => 0.9, // No sweep.
  });
  fault(database.rows, database.functions);
  const port = portOver(async (text, values) => {
    const statement = readStatement(text, values);
    if (statement.kind === "command") return database.run(statement.command, statement.requests);
    if (statement.kind === "notify") wakeUps.push(...statement.wakeUps.map(([, ticket]) => ticket));
    return [{ reply: LeaseDatabase.id }];
  });
  const pass = async (ms: number): Promise<void> => void (now += ms);
  return {
    name: "the model",
    stores: storesOver(port),
    pass,
    stepClock: pass,
    forgetScripts: async () => {},
    wakeUps: async () => wakeUps.splice(0),
    async begin(isRepeatable) {
      const transaction = database.begin(isRepeatable);
      return {
        query: async (sql) => transaction.query(sql),
        end: async () => transaction.end(),
      };
    },
    async stored() {
      const { holds, groups, waiters } = database.rows.snapshot;
      const groupOf = ({ groupId = "" }: Hold): string => {
        const group = groups.get(groupId);
        return group === undefined ? " " : `${group.expiresAt - STARTS_AT_MS} ${group.renewals}`;
      };
      const lines = [
        ...[...holds.values()]
          .flat()
          .map((one) => [
            one.key,
            one.holder,
            one.expiresAt - STARTS_AT_MS,
            one.isRevoked,
            one.isReleased,
            one.limit,
            one.permits,
            groupOf(one),
          ]),
        ...[...groups.values()].map((one) => ["group", one.expiresAt - STARTS_AT_MS, one.renewals]),
        ...[...waiters.values()]
          .flat()
          .map((one) => [one.key, one.ticket, one.turn, one.isReader, one.expiresAt - STARTS_AT_MS]),
      ];
      return lines
        .map((line) => `\n    ${line.join(" ")}`)
        .toSorted()
        .join("");
    },
  };
}

/** Histories in which a guard or the order of a batch matters. Random ones rarely guard a hold that then changes. */
const EXAMPLES: readonly (readonly Step[])[] = [true, false].flatMap((isRepeatable) => {
  const begin = { kind: "begin", transaction: 0, isRepeatable } as const;
  const guard = { kind: "guard", transaction: 0, who: 0 } as const;
  const end = { kind: "end", transaction: 0 } as const;
  const taken = { kind: "acquire", who: 0 } as const;
  /** A caller without a fencing token, whose hold joins a renewal group. */
  const grouped: readonly Step[] = [
    { kind: "acquire", who: 3 },
    { kind: "renew", who: 3 },
  ];
  const expired = { kind: "pass", ticks: 3 } as const;
  const others: readonly Step[] = [
    { kind: "acquire", who: 2 },
    { kind: "enqueue", who: 4 },
  ];
  const repeated = (kind: "acquire" | "enqueue"): readonly Step[] => [
    { kind, who: 8 },
    { kind, who: 10 },
    begin,
    { kind: "guard", transaction: 0, who: 8 },
    { kind: "release", who: 8 },
    { kind: "inspect", who: 8 },
    { kind: "again", ago: 3 }, // The command of the guarded hold.
    end,
    { kind: "again", ago: 3 },
  ];
  return [
    [taken, begin, { kind: "revoke", who: 0 }, guard, end],
    [
      taken,
      begin,
      guard,
      { kind: "revoke", who: 0 },
      guard,
      { kind: "release", who: 0 },
      ...others,
      end,
      ...others,
    ],
    [taken, begin, expired, ...others, guard, end],
    [taken, begin, expired, guard, ...others, { kind: "renew", who: 0 }, end, ...others],
    [
      taken,
      begin,
      { kind: "renew", who: 0 },
      guard,
      { kind: "release", who: 0 },
      ...others,
      guard,
      end,
      ...others,
    ],
    [taken, begin, guard, { kind: "releaseAndEnqueue", who: 0, next: 1 }, end, { kind: "enqueue", who: 8 }],
    [taken, begin, guard, { kind: "free", who: 0 }, { kind: "inspect", who: 0 }, end, ...others],
    [taken, { kind: "release many", who: 2, others: [0, 1] }, ...others],
    [{ kind: "acquire many", who: 4, others: [2, 1] }, ...others],
    [...grouped, { kind: "revoke", who: 3 }, { kind: "renew", who: 3 }],
    [...grouped, expired, { kind: "acquire", who: 1 }, { kind: "renew", who: 3 }],
    repeated("acquire"),
    repeated("enqueue"),
  ];
});

async function firstDifference(fault?: Fault): Promise<string | undefined> {
  const property = fc.asyncProperty(historiesWithGuards, async (steps) => {
    const real = await postgres.subject(STARTS_AT_MS);
    const found = await compare(
      steps,
      new HistoryPlayer(inModel(fault ?? (() => {})), "LOCK"),
      new HistoryPlayer(real, "LOCK"),
    );
    await postgres.endTransactions();
    if (found !== undefined) throw new Error(found);
  });
  const { errorInstance } = await fc.check(property, {
    seed: SEED,
    numRuns: HISTORIES + EXAMPLES.length,
    examples: EXAMPLES.map((steps) => [[...steps]]),
    endOnFailure: fault !== undefined,
  });
  return errorInstance instanceof Error ? errorInstance.message : undefined;
}

test.serial("the model and PostgreSQL reply the same to every history", async (t) => {
  t.is(await firstDifference(), undefined, `SEED=${SEED}`);
});

const FAULTS_IN_NPM_TEST = 2;

const FAULTS: Record<string, Fault> = {
  "acquires a key whose row is guarded": (rows) => (rows.isLocked = () => false),
  "revokes a row in place": (rows, functions) => {
    functions.revoke = ({ key, request_id: requestId }) => {
      const hold = rows.find(key, requestId);
      if (hold === undefined || !rows.isAlive(hold)) return false;
      rows.update(hold, { isRevoked: true });
      return true;
    };
  },
  "renews a group with a revoked hold": (rows) => (rows.closeGroups = () => {}),
  "takes a hold over, and leaves its group": (rows) => (rows.removeOverGroups = () => {}),
  "wakes nobody": (rows) => (rows.wake = () => {}),
  "acquires for a batch in its order": (_, functions) => (functions.acquirePlain = () => undefined),
  "releases a batch in its order": (_, functions) => (functions.releasePlain = () => undefined),
  "passes a key on to nobody": (rows, functions) => {
    const releasePlain = functions.releasePlain.bind(functions);
    functions.releasePlain = (request) => {
      const { waiters } = rows;
      rows.waiters = () => [];
      const reply = releasePlain(request);
      rows.waiters = waiters;
      return reply;
    };
  },
  "frees a key whose row is guarded": (rows, functions) => {
    const free = functions.free.bind(functions);
    functions.free = (request) => {
      const { isLocked } = rows;
      rows.isLocked = () => false;
      const reply = free(request);
      rows.isLocked = isLocked;
      return reply;
    };
  },
  "grants a repeated request of a guarded hold": (rows) => {
    const grant = rows.grant.bind(rows);
    rows.grant = (request, state) => {
      const reply = grant(request, state);
      return reply.granted
        ? reply
        : { granted: true, token: null, count: 1, other_limit: null, waiters: false };
    };
  },
  "calls a guarded hold closed": (rows) => {
    const valueOf = rows.valueOf.bind(rows);
    rows.valueOf = (hold) => valueOf(hold).replace("guarded:", "closed:");
  },
};

for (const [nth, [name, fault]] of Object.entries(FAULTS).entries()) {
  const inSuite = nth < FAULTS_IN_NPM_TEST ? outsideMatrixSerially : inMatrixSerially;
  inSuite(`the comparison with PostgreSQL finds a model that ${name}`, async (t) => {
    t.regex((await firstDifference(fault)) ?? "", /but PostgreSQL/);
  });
}
