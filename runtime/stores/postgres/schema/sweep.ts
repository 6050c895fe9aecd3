import { helper } from "./routine";

/** One in this many requests looks for old rows. */
const SWEEP_EVERY = 64;

/** The blocks of each table that a sweep reads for one request, and for each further {@link SWEEP_EVERY} requests. */
const BLOCKS = 8;

/** The most rows that a sweep deletes from each table. */
const MOST_ROWS = 1_024;

/** A sweep deletes a row only if it has been over for this time, because a waiter may be about to acquire its key. */
const MIN_AGE = "interval '5 s'";

/**
 * Sweeps now and then. It comes last in its transaction, so it never holds rows while it waits for a lock.
 *
 * @param requests the number of requests
 */
export function sweep(requests: string): string {
  return `IF random() * ${SWEEP_EVERY} < ${requests} THEN
    PERFORM lockweave.sweep_v1(${BLOCKS} * ceil(${requests} / ${SWEEP_EVERY}.0)::integer);
  END IF;`;
}

/** Sets the variable for the first block, from which a sweep reads. */
const chooseBlocks = (table: string): string => `
  first_block := floor(random() * pg_relation_size('lockweave.${table}'::regclass) / current_setting('block_size')::integer);`;

const isOld = (table: string): string => `
    FROM lockweave.${table} t
    WHERE t.ctid >= ('(' || first_block || ',0)')::tid AND t.ctid < ('(' || first_block + blocks || ',0)')::tid
      AND t.expires_at < clock_timestamp() - ${MIN_AGE}`;

const deleteOld = (table: string, andOf = ""): string => `
  DELETE FROM lockweave.${table} o WHERE o.ctid = ANY (ARRAY(
    SELECT t.ctid ${isOld(table)}${andOf}
    LIMIT ${MOST_ROWS} FOR UPDATE SKIP LOCKED
  ));`;

/**
 * Sweeps the holds. When a row was changed by a transaction that has just ended, PostgreSQL reads that row again, but other tables as they were
 * before. So the statement that deletes reads no groups. A group that is gone never comes back.
 */
const SWEEP_HOLDS = `${chooseBlocks("hold")}
  gone := ARRAY(SELECT DISTINCT t.group_id ${isOld("hold")} AND t.group_id IS NOT NULL
      AND (SELECT true FROM lockweave.renewal_group g WHERE g.id = t.group_id) IS NULL);
  ${deleteOld("hold", "\n      AND (t.is_released OR t.group_id IS NULL OR t.group_id = ANY (gone))")}`;

const OTHER_TABLES = ["renewal_group", "waiter", "fence", "process"] as const;

/**
 * Deletes old rows from a random place of each table. So the rows of keys that nobody uses again disappear without a background job, and
 * without an index on the time, which each renewal would have to update.
 *
 * It needs no advisory lock: a hold that is over never becomes valid again, and a hold whose row is locked stays.
 */
export const SWEEPING = helper(
  "sweep_v1(blocks integer)",
  "void",
  `
DECLARE
  first_block bigint;
  gone uuid[];
BEGIN${SWEEP_HOLDS}${OTHER_TABLES.map((table) => chooseBlocks(table) + deleteOld(table)).join("")}
END
`,
);
