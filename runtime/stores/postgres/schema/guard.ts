import { helper } from "./routine";

// The errors of `guard_v1`, as codes in a class that neither the SQL standard nor PostgreSQL uses.
/** One of the holds is gone. The message names the request IDs of all holds that are gone. */
export const NOT_HELD = "LW001";
/** The beginning of that message. Some client libraries hide the code. */
export const NOT_HELD_TEXT = "this transaction cannot commit, because its lock is not held";
/** The transaction is in another database than the store. */
export const OTHER_DATABASE = "LW002";

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
  lost text;
BEGIN
  IF wanted->>'database' IS DISTINCT FROM (SELECT a.id FROM lockweave.about a)::text THEN
    RAISE EXCEPTION USING ERRCODE = '${OTHER_DATABASE}', MESSAGE = 'the locks are in another database';
  END IF;
  SELECT coalesce(array_agg(h.holder), '{}') INTO held FROM (
    SELECT h.holder FROM json_to_recordset(wanted->'holds') r(key text, request_id text)
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

/**
 * Returns the backends whose transactions guard a hold, such as `backend 4711`. Null if none does. Reads only, and never waits.
 *
 * The number of the transaction that locks a row is in its system column `xmax`. If there are several, it is the number of a list of
 * transactions, and nothing in the row says so. The commands of the store also lock rows. They change the table, which a guard does not.
 */
export const GUARDED_BY = helper(
  "guarded_by_v1(locker xid)",
  "text",
  `
DECLARE
  lockers xid[] := ARRAY[locker];
BEGIN
  IF locker = '0' THEN
    RETURN NULL;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'transactionid' AND l.transactionid = locker AND l.granted) THEN
    BEGIN
      lockers := ARRAY(SELECT m.xid FROM pg_get_multixact_members(locker) m);
    EXCEPTION WHEN OTHERS THEN
      RETURN NULL; -- The number of a transaction that has ended.
    END;
  END IF;
  RETURN (
    SELECT string_agg(coalesce('backend ' || l.pid, 'prepared transaction ' || p.gid), ', ' ORDER BY l.pid)
    FROM pg_locks l
    -- The number of a savepoint differs from that of its transaction.
    LEFT JOIN pg_prepared_xacts p ON l.pid IS NULL AND p.transaction IN (
      SELECT s.transactionid FROM pg_locks s WHERE s.pid IS NULL AND s.virtualtransaction = l.virtualtransaction)
    WHERE l.locktype = 'transactionid' AND l.granted AND l.transactionid = ANY (lockers) AND NOT EXISTS (
      SELECT FROM pg_locks c WHERE c.virtualtransaction = l.virtualtransaction AND c.locktype = 'relation'
        AND c.relation = 'lockweave.hold'::regclass AND c.mode = 'RowExclusiveLock'
        AND c.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
  );
END
`,
);
