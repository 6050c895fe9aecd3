import { helper, nameOfRequest } from "./routine";

// The errors of `guard_v1`, as codes in a class that neither the SQL standard nor PostgreSQL uses.
/** One of the holds is gone. The message names the request IDs of all holds that are gone. */
export const NOT_HELD = "LW001";
/** The beginning of that message. Some client libraries hide the code. */
export const NOT_HELD_TEXT = "this transaction cannot commit, because its lock is not held";
/** The transaction is in another database than the store. */
export const OTHER_DATABASE = "LW002";

/**
 * The kind of advisory locks that a guard takes: those with two numbers of 32 bits. Those of commands have one of 64 bits, so no command waits for
 * a guard.
 */
const TWO_NUMBERS = 2;

/**
 * Returns the number of the advisory lock that a guard takes for a hold, beside the lock on its row. That lock names the backend, which the row does
 * not after a savepoint.
 *
 * Nobody else relies on it. If an application uses the same number, only the names of backends are wrong.
 */
export function guardIdOf(hold: string): string {
  return `hashtextextended(${nameOfRequest(`${hold}.key`, `${hold}.holder`)}, 'lockweave.hold'::regclass::oid::bigint)`;
}

/**
 * Locks the rows of holds inside a transaction of the application, so that no command can delete them until that transaction ends. A row
 * that is locked in this way can still be renewed, released, and revoked.
 *
 * `FOR KEY SHARE` is the weakest lock that excludes deletion. With a stronger one, the holder's own renewals would wait. A hold that has
 * expired passes if its row is still there, because then nobody has acquired the key since.
 *
 * If a hold is gone, the function raises an error. So the transaction cannot commit, whatever its caller does with that error, except for a
 * rollback to an earlier savepoint.
 *
 * The request is `{ database, holds: { key, request_id }[] }` in JSON, in hexadecimal. So no client library finds a placeholder or a quotation
 * mark in it. Reply: the number of the transaction.
 */
export const GUARD = `
CREATE FUNCTION lockweave.guard_v1(request text) RETURNS text
  LANGUAGE plpgsql VOLATILE
  SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
  wanted json := convert_from(decode(request, 'hex'), 'UTF8')::json;
  held text[];
  named bigint;
  lost text;
BEGIN
  IF wanted->>'database' IS DISTINCT FROM (SELECT a.id FROM lockweave.about a)::text THEN
    RAISE EXCEPTION USING ERRCODE = '${OTHER_DATABASE}', MESSAGE = 'the locks are in another database';
  END IF;
  SELECT coalesce(array_agg(h.holder), '{}'),
    count(pg_try_advisory_xact_lock_shared((h.id >> 32)::integer, (h.id << 32 >> 32)::integer))
  INTO held, named FROM (
    SELECT h.holder, ${guardIdOf("h")} AS id FROM json_to_recordset(wanted->'holds') r(key text, request_id text)
    JOIN lockweave.hold h ON h.key = r.key AND h.holder = r.request_id
    WHERE NOT h.is_revoked AND NOT h.is_released
    ORDER BY h.key, h.holder
    FOR KEY SHARE OF h
  ) h;
  SELECT string_agg(r.request_id, ', ') INTO lost FROM json_to_recordset(wanted->'holds') r(request_id text)
  WHERE r.request_id <> ALL (held);
  IF lost IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = '${NOT_HELD}', MESSAGE = '${NOT_HELD_TEXT}: ' || lost;
  END IF;
  RETURN pg_current_xact_id()::text;
END
$function$;
`;

/** Whether a transaction guards the hold. */
export function isGuarded(hold: string): string {
  return `${guardIdOf(hold)} IN (SELECT g.id FROM lockweave.guards_v1() g)`;
}

/** The backends whose transactions guard the hold, such as `backend 4711`. Null if none does. */
export function guardedBy(hold: string): string {
  return `(SELECT g.guarded_by FROM lockweave.guards_v1() g WHERE g.id = ${guardIdOf(hold)})`;
}

/** Returns all guards of the schema, by the numbers of their advisory locks. */
export const GUARDS = helper(
  "guards_v1()",
  "TABLE (id bigint, guarded_by text)",
  `
BEGIN
  RETURN QUERY
    SELECT l.classid::bigint << 32 | l.objid::bigint,
      string_agg(coalesce('backend ' || l.pid, 'prepared transaction ' || p.gid), ', ' ORDER BY l.pid)
    FROM pg_locks l
    -- A prepared transaction has no backend.
    LEFT JOIN pg_prepared_xacts p ON l.pid IS NULL AND p.transaction IN (
      SELECT s.transactionid FROM pg_locks s WHERE s.pid IS NULL AND s.virtualtransaction = l.virtualtransaction)
    WHERE l.locktype = 'advisory' AND l.objsubid = ${TWO_NUMBERS} AND l.mode = 'ShareLock' AND l.granted
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    GROUP BY 1;
END
`,
);
