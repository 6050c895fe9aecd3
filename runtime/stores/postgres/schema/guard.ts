import { helper } from "./routine";

/**
 * Locks the rows of holds inside a transaction of the application, so that no command can delete them until that transaction ends. A row
 * that is locked in this way can still be renewed, released, and revoked.
 *
 * `FOR KEY SHARE` is the weakest lock that excludes deletion. With a stronger one, the holder's own renewals would wait. A hold that has
 * expired passes if its row is still there, because then nobody has acquired the key since.
 *
 * The request is a JSON array of `{ key, request_id }`, in hexadecimal. So no client library finds a placeholder or a quotation mark in it.
 * Reply: the ID of the database, the number of the transaction, and the request IDs that are still held.
 */
export const GUARD = `
CREATE FUNCTION lockweave.guard_v1(requests text) RETURNS text
  LANGUAGE plpgsql VOLATILE
  SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
  request_ids json;
BEGIN
  SELECT coalesce(json_agg(h.holder), '[]') INTO request_ids FROM (
    SELECT h.holder FROM json_to_recordset(convert_from(decode(requests, 'hex'), 'UTF8')::json) r(key text, request_id text)
    JOIN lockweave.hold h ON h.key = r.key AND h.holder = r.request_id
    WHERE NOT h.is_revoked AND NOT h.is_released
    ORDER BY h.key, h.holder
    FOR KEY SHARE OF h
  ) h;
  RETURN json_build_object(
    'database', (SELECT a.id FROM lockweave.about a),
    'transaction', pg_current_xact_id()::text,
    'held', request_ids
  );
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
