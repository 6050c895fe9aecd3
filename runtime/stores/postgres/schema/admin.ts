import { guardedBy, isGuarded } from "./guard";
import { command, helper, repliesOf } from "./routine";
import { ENDS, IS_ALIVE } from "./state";
import { READERS } from "./tables";
import { MAY_BE_LOST } from "./transaction";

/** Returns the value of each key, or null. Locks nothing and changes nothing. */
export const PEEK = command(
  "peek_v1",
  `
BEGIN
  PERFORM lockweave.check_v1(timeout_ms);
  RETURN (
    SELECT coalesce(json_agg(v.value ORDER BY r.position), '[]')
    FROM json_array_elements_text(requests::json) WITH ORDINALITY AS r(key, position)
    LEFT JOIN LATERAL (
      SELECT CASE WHEN max(h.permit_limit) IS NULL THEN max(lockweave.value_v1(h))
        WHEN max(h.permit_limit) = 0 THEN ${READERS}
        ELSE 'shared:permits:' || sum(h.permits) END AS value
      FROM lockweave.hold h WHERE h.key = r.key AND ${IS_ALIVE}
    ) v ON true
  );
END
`,
);

/**
 * Returns the holds of one key, with the ms that they have left, and the number of its waiters. At most 1,000 each. A hold that is over counts
 * while a transaction guards it.
 */
export const INSPECT = command(
  "inspect_v1",
  `
DECLARE
  lock_key CONSTANT text := requests::json->>0;
BEGIN
  PERFORM lockweave.check_v1(timeout_ms);
  RETURN json_build_array(json_build_object(
    'holds', (SELECT coalesce(json_agg(h.hold), '[]') FROM (
      SELECT json_build_object(
        'value', lockweave.value_v1(h),
        'left_ms', greatest(extract(epoch FROM ${ENDS} - clock_timestamp()) * 1000, 0),
        'permits', CASE WHEN h.permit_limit > 0 THEN h.permits END) AS hold
      FROM lockweave.hold h WHERE h.key = lock_key
        AND (${IS_ALIVE} OR ${isGuarded("h")}) LIMIT 1000) h),
    'waiting', (SELECT count(*) FROM (SELECT FROM lockweave.waiter w
      WHERE w.key = lock_key AND w.expires_at > clock_timestamp() LIMIT 1000) w)
  ));
END
`,
);

/**
 * Keeps the renewal groups of the holds of these keys from being renewed again. Each of their holds continues, and its holder's next renewal learns
 * whether it is revoked.
 *
 * Call it first. It waits for a renewal that has not committed yet, and then nobody renews the groups before the caller commits. Otherwise a
 * command could read an earlier end of a hold than the one that a renewal has promised.
 */
export const CLOSE_GROUPS = helper(
  "close_groups_v1(all_requests lockweave.request_v1[])",
  "void",
  `
DECLARE
  group_ids CONSTANT uuid[] := ARRAY(
    SELECT m.group_id FROM unnest(all_requests) q CROSS JOIN LATERAL (
      SELECT h.group_id FROM lockweave.hold h WHERE h.key = q.key AND h.group_id IS NOT NULL OFFSET 0
    ) m);
BEGIN
  -- In the same order as a renewal, so that the two do not wait for each other.
  PERFORM FROM lockweave.renewal_group g WHERE g.id = ANY (group_ids) ORDER BY g.id FOR NO KEY UPDATE;
  UPDATE lockweave.renewal_group g SET renewals = -1 WHERE g.id = ANY (group_ids);
END
`,
);

/** A hold by its request ID, or a revoked one by its value. */
const IS_WANTED = "(h.holder = r.request_id OR h.is_revoked AND lockweave.value_v1(h) = r.request_id)";

/**
 * Revokes each hold, and replaces its row. In REPEATABLE READ, a guard reads the row as it was when its transaction began, and passes if the
 * row still exists. A row that is already guarded stays.
 *
 * Reply for each: whether it is revoked.
 */
export const REVOKE = command(
  "revoke_v1",
  `
DECLARE
  all_requests CONSTANT lockweave.request_v1[] := lockweave.begin_v1(requests, timeout_ms);
  r lockweave.request_v1;
  replies boolean[] := '{}';
BEGIN
  PERFORM lockweave.close_groups_v1(all_requests);
  FOREACH r IN ARRAY all_requests LOOP
    WITH replaced AS (
      DELETE FROM lockweave.hold o WHERE o.key = r.key AND o.holder = (
        SELECT h.holder FROM lockweave.hold h
        WHERE h.key = r.key AND ${IS_WANTED} AND ${IS_ALIVE} FOR UPDATE SKIP LOCKED)
      RETURNING o.*
    )
    INSERT INTO lockweave.hold (key, holder, expires_at, is_revoked, permit_limit, permits)
      SELECT h.key, h.holder, ${ENDS}, true, h.permit_limit, h.permits FROM replaced h;
    IF NOT FOUND THEN
      UPDATE lockweave.hold h SET is_revoked = true
        WHERE h.key = r.key AND ${IS_WANTED} AND ${IS_ALIVE};
    END IF;
    replies := replies || FOUND;
  END LOOP;
  RETURN array_to_json(replies);
END
`,
);

/**
 * Frees each key that has the value `request_id`, whoever wrote it, and passes the key on. A row that a transaction guards stays.
 *
 * Reply for each: whether it was released; or the value of the key, and the backends whose transactions guard it.
 */
export const FREE = command(
  "free_v1",
  `
DECLARE
  all_requests CONSTANT lockweave.request_v1[] := lockweave.begin_v1(requests, timeout_ms);
  r lockweave.request_v1;
  keeper text;
  replies text[] := '{}';
  setting text;
BEGIN
  PERFORM lockweave.close_groups_v1(all_requests);
  FOREACH r IN ARRAY all_requests LOOP
    DELETE FROM lockweave.hold o WHERE o.key = r.key AND o.holder = ANY (ARRAY(
      SELECT h.holder FROM lockweave.hold h
      WHERE h.key = r.key AND lockweave.value_v1(h) = r.request_id FOR UPDATE SKIP LOCKED));
    IF FOUND THEN
      PERFORM lockweave.remove_over_v1(r.key);
      PERFORM lockweave.pass_on_v1(r.key);
      replies := replies || '{"released":true}'::text;
      CONTINUE;
    END IF;
    SELECT coalesce(${guardedBy("h")}, 'unknown backend') INTO keeper FROM lockweave.hold h WHERE h.key = r.key AND lockweave.value_v1(h) = r.request_id;
    IF FOUND THEN
      replies := replies || json_build_object('released', false, 'holder', r.request_id, 'guarded_by', keeper)::text;
    ELSE
      replies := replies || lockweave.not_released_v1(r.key);
    END IF;
  END LOOP;
  ${MAY_BE_LOST}
  RETURN ${repliesOf("replies")};
END
`,
);

/** Stores the announcement of a process for a time. The request: its number, its JSON, and the time in ms. */
export const ANNOUNCE = command(
  "announce_v1",
  `
DECLARE
  announcement CONSTANT json := requests::json->0;
  setting text;
BEGIN
  PERFORM lockweave.check_v1(timeout_ms);
  INSERT INTO lockweave.process AS p (number, about, expires_at)
    VALUES (announcement->>'number', announcement->>'about',
      clock_timestamp() + lockweave.duration_v1((announcement->>'for_ms')::double precision))
    ON CONFLICT (number) DO UPDATE SET about = excluded.about, expires_at = excluded.expires_at;
  ${MAY_BE_LOST}
  RETURN '[]';
END
`,
);
