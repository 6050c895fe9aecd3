import { helper } from "./routine";

/** The error code with which a function rejects a transaction in which it could not see what other transactions did. */
export const NOT_ISOLATED = "LW001";

/** The error code with which a function rejects a lock that more standbys must confirm than confirm a commit. */
export const TOO_FEW_STANDBYS = "LW002";

/** The error code with which a function rejects a request for a key whose advisory lock another transaction keeps. */
export const KEY_IS_BUSY = "LW003";

/**
 * A command waits for the advisory lock of one key for this part of its time, and for those of all its keys for the other part. Then it gives up
 * the keys that are still busy, because commands for other keys wait for its connection.
 */
const WAIT_OF_KEY = 4;
const WAIT_OF_BATCH = 2;

/**
 * Bounds each wait for another transaction, such as one that locks a table. A command must not take effect long after its caller gave up.
 */
export const BOUND_WAITS = "setting := set_config('lock_timeout', greatest(timeout_ms, 1)::text, true);";

/**
 * Checks that the transaction can see what other transactions did, and bounds how long it waits for them.
 */
const CHECK = `IF pg_is_in_recovery() THEN
    RAISE EXCEPTION 'the server is a standby' USING ERRCODE = 'read_only_sql_transaction';
  END IF;
  IF current_setting('transaction_isolation') <> 'read committed' OR current_setting('transaction_read_only') = 'on' THEN
    RAISE EXCEPTION 'locks need a READ COMMITTED, READ WRITE transaction' USING ERRCODE = '${NOT_ISOLATED}';
  END IF;
  ${BOUND_WAITS}`;

/** Makes the commit wait for the disk of this server, at least. */
export const MUST_LAST = `IF current_setting('synchronous_commit') = 'off' THEN
    setting := set_config('synchronous_commit', 'local', true);
  END IF;`;

/** Lets the commit return before the data is on the disk. */
export const MAY_BE_LOST = `setting := set_config('synchronous_commit', 'off', true);`;

/**
 * Returns a condition that takes the advisory lock of a key, unless another command has it. It is false for a transaction that {@link CHECK}
 * rejects. It costs less than the beginning of other commands, because it waits for no key.
 */
export function canBeginAtOnce(key: string): string {
  return `current_setting('transaction_isolation') = 'read committed' AND current_setting('transaction_read_only') = 'off'
      AND pg_try_advisory_xact_lock(${lockIdOf(key)})`;
}

/** Returns the number of the advisory lock of a key. Each store in a database has a range of its own. */
function lockIdOf(key: string): string {
  return `hashtextextended(${key} COLLATE "C", 'lockweave.hold'::regclass::oid::bigint)`;
}

/**
 * Begins and ends the transaction of a command.
 *
 * Each command first takes an advisory lock for each of its keys, in the order of their numbers, so no two commands wait for each other. An
 * application may use the same number and keep it for long. Then a batch skips that key, and serves the others. A command for that key alone
 * fails.
 *
 * A transaction at a higher isolation level than READ COMMITTED would not see what happened while it waited, and could give a key to a
 * second holder. So a function rejects it.
 *
 * Grants, renewals, revocations, and cooldowns must survive a crash of the server. If the server loses a release, the key only becomes free a
 * little later. If it keeps a later grant, it also keeps the release before that, because its log is sequential.
 */
export const TRANSACTION = [
  // Reads the requests, and takes their advisory locks. In a batch, marks the requests whose keys stay busy, so that the command skips them. If
  // all requests are for one busy key, that is an error. The commit waits for the disk, and for the standbys that a request asks for.
  helper(
    "begin_v1(requests text, timeout_ms integer)",
    "lockweave.request_v1[]",
    `
DECLARE
  all_requests lockweave.request_v1[];
  r lockweave.request_v1;
  replicas integer;
  lock_ids bigint[];
  lock_id bigint;
  busy bigint[] := '{}';
  may_wait_until timestamptz;
  setting text;
BEGIN
  ${CHECK}
  SELECT array_agg(q), max(q.replicas) INTO all_requests, replicas
    FROM json_populate_recordset(NULL::lockweave.request_v1, requests::json) q;
  IF replicas > 0 THEN
    PERFORM lockweave.confirm_v1(replicas);
  END IF;
  ${MUST_LAST}
  IF cardinality(all_requests) = 1 THEN
    lock_ids := ARRAY[${lockIdOf("all_requests[1].key")}];
  ELSE
    lock_ids := ARRAY(SELECT DISTINCT ${lockIdOf("q.key")} FROM unnest(all_requests) q ORDER BY 1);
  END IF;
  may_wait_until := clock_timestamp() + lockweave.duration_v1(timeout_ms / ${WAIT_OF_BATCH});
  FOREACH lock_id IN ARRAY lock_ids LOOP
    IF NOT pg_try_advisory_xact_lock(lock_id) THEN
      IF NOT lockweave.wait_for_v1(lock_id, timeout_ms, may_wait_until) THEN
        busy := busy || lock_id;
      END IF;
    END IF;
  END LOOP;
  IF cardinality(busy) > 0 THEN
    IF cardinality(lock_ids) = 1 THEN
      RAISE EXCEPTION 'canceling the command due to a wait for an advisory lock' USING ERRCODE = '${KEY_IS_BUSY}';
    END IF;
    FOR i IN 1 .. cardinality(all_requests) LOOP
      r := all_requests[i];
      r.is_busy := ${lockIdOf("r.key")} = ANY (busy);
      all_requests[i] := r;
    END LOOP;
  END IF;
  RETURN all_requests;
END
`,
  ),
  // Waits for the advisory lock of one key. Returns whether it has the lock.
  helper(
    "wait_for_v1(lock_id bigint, timeout_ms integer, may_wait_until timestamptz)",
    "boolean",
    `
DECLARE
  left_ms CONSTANT integer := extract(epoch FROM may_wait_until - clock_timestamp()) * 1000;
BEGIN
  PERFORM set_config('lock_timeout', greatest(least(left_ms, timeout_ms / ${WAIT_OF_KEY}), 1)::text, true);
  PERFORM pg_advisory_xact_lock(lock_id);
  PERFORM set_config('lock_timeout', greatest(timeout_ms, 1)::text, true);
  RETURN true;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
  RETURN false;
END
`,
  ),
  // Makes the commit wait for standbys.
  helper(
    "confirm_v1(replicas integer)",
    "void",
    `
BEGIN
  IF replicas > lockweave.confirmations_v1() THEN
    RAISE EXCEPTION 'synchronous_standby_names makes a commit wait for % standbys, and the lock needs %',
      lockweave.confirmations_v1(), replicas USING ERRCODE = '${TOO_FEW_STANDBYS}';
  END IF;
  IF current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
END
`,
  ),
  // Returns the number of standbys that confirm a commit: the number before the list, 1 if there is none, and 0 without a list. This text has
  // no backslash, because its meaning depends on the settings of the user.
  helper(
    "confirmations_v1()",
    "integer",
    `
DECLARE
  names CONSTANT text := current_setting('synchronous_standby_names');
BEGIN
  IF names !~ '[^[:space:]]' THEN
    RETURN 0;
  END IF;
  RETURN coalesce(substring(names FROM '^[[:space:]]*(?:[[:alpha:]]+[[:space:]]+)?([0-9]+)[[:space:]]*[(]')::integer, 1);
END
`,
  ),
  helper(
    "check_v1(timeout_ms integer)",
    "void",
    `
DECLARE
  setting text;
BEGIN
  ${CHECK}
END
`,
  ),
  `
-- Runs a command in a READ COMMITTED transaction, whatever the settings of the user are.
CREATE PROCEDURE lockweave.isolated_v1(command text, requests text, timeout_ms integer, INOUT reply text)
  LANGUAGE plpgsql
AS $function$
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
  EXECUTE format('SELECT lockweave.%I($1, $2)', command) INTO reply USING requests, timeout_ms;
END
$function$;
`,
].join("");
