import { command, eachOtherReply, helper, nameOfRequest, repliesOf } from "./routine";
import { ENDS, IS_ALIVE } from "./state";
import { sweep } from "./sweep";
import { MUST_LAST } from "./transaction";

const RENEWED = '{"renewed":true,"joined":true}';

/**
 * Renews each hold for its lock time from now, and never shortens one. A shared hold keeps at most `permits` of its permits. Only columns
 * change that no index contains, so a renewal never waits for a transaction that guards the hold.
 *
 * With `group_id`, plain holds join that renewal group, which is new. The IDs of a process ascend, so a late command moves no hold back to an
 * earlier group.
 *
 * Reply for each: whether it was renewed, a token if requested, and whether anybody waits; or the value of the key.
 */
export const RENEW = [
  helper(
    "renew_one_v1(r lockweave.request_v1)",
    "text",
    `
DECLARE
  held lockweave.hold;
  kept integer;
  token bigint;
BEGIN
  SELECT * INTO held FROM lockweave.hold h WHERE h.key = r.key AND h.holder = r.request_id;
  -- The update decides, and not what was read before: the hold may have expired meanwhile, and a sweep may have deleted it.
  UPDATE lockweave.hold h SET
      expires_at = greatest(h.expires_at, clock_timestamp() + lockweave.duration_v1(r.lock_ms)),
      permits = CASE WHEN h.permit_limit > 0 THEN least(h.permits, coalesce(r.permits, h.permits)) ELSE h.permits END
    WHERE h.key = r.key AND h.holder = r.request_id AND NOT h.is_revoked AND ${IS_ALIVE}
    RETURNING h.permits INTO kept;
  IF NOT FOUND THEN
    RETURN json_build_object('renewed', false,
      'holder', coalesce(lockweave.own_v1(r.key, r.request_id), (lockweave.read_key_v1(r.key)).value));
  END IF;
  IF kept < held.permits THEN
    PERFORM lockweave.wake_v1(lockweave.first_waiter_v1(r.key));
  END IF;
  IF r.fencing AND held.permit_limit IS NULL THEN
    token := lockweave.draw_token_v1(r.key, r.lock_ms);
  END IF;
  RETURN json_build_object('renewed', true, 'token', token::text,
    'waiters', held.permit_limit IS NOT NULL AND lockweave.must_wait_v1(r.key, least(held.permit_limit, 1)));
END
`,
  ),
  command(
    "renew_v1",
    `
DECLARE
  all_requests CONSTANT lockweave.request_v1[] := lockweave.begin_v1(requests, timeout_ms);
  r lockweave.request_v1;
  new_group CONSTANT uuid := (SELECT q.group_id FROM unnest(all_requests) q WHERE q.group_id IS NOT NULL LIMIT 1);
  plain text[];
  reply text;
  replies text[] := '{}';
BEGIN
  IF cardinality(all_requests) > 1 OR new_group IS NOT NULL THEN
    WITH renewed AS (
      UPDATE lockweave.hold h
        SET expires_at = greatest(${ENDS}, clock_timestamp() + make_interval(secs => q.lock_ms / 1000)),
          group_id = CASE WHEN q.joins THEN new_group ELSE h.group_id END
        FROM (
          SELECT max(u.lock_ms) AS lock_ms, bool_or(u.group_id IS NOT NULL) AS joins,
            (SELECT o.ctid FROM lockweave.hold o WHERE o.key = u.key AND o.holder = u.request_id) AS place
          FROM unnest(all_requests) u WHERE NOT u.fencing AND u.is_busy IS NOT TRUE
          GROUP BY u.key, u.request_id OFFSET 0 -- An update changes a row only once.
        ) q
        WHERE h.ctid = q.place AND h.permit_limit IS NULL AND NOT h.is_revoked AND ${IS_ALIVE}
          AND (NOT q.joins OR h.group_id IS NULL OR h.group_id < new_group)
        RETURNING ${nameOfRequest("h.key", "h.holder")} AS request
    )
    SELECT array_agg(n.request) INTO plain FROM renewed n;
    IF new_group IS NOT NULL AND plain IS NOT NULL THEN
      INSERT INTO lockweave.renewal_group (id, expires_at)
        SELECT new_group, clock_timestamp() + lockweave.duration_v1(min(q.lock_ms))
        FROM unnest(all_requests) q WHERE q.group_id IS NOT NULL
        ON CONFLICT (id) DO NOTHING;
    END IF;
  END IF;
  ${eachOtherReply("lockweave.renew_one_v1(r)", RENEWED)}
  IF new_group IS NOT NULL THEN -- Processes that only hold locks may leave many groups behind.
    ${sweep("cardinality(all_requests)")}
  END IF;
  RETURN ${repliesOf("replies")};
END
`,
  ),
].join("");

/**
 * Renews each group of holds, unless it has expired. It takes no advisory lock. The clock is read only when the row is locked, so no acquisition
 * can take over a hold of the group between that moment and the commit.
 *
 * A crash or a failover may lose the last commits. Then a released hold may be back, and would live on with its group. So a request contains the
 * number of earlier renewals, and in `ended` the holds that have left the group since the last one. If the rows differ, the group is not renewed.
 *
 * Reply for each: whether it was renewed.
 */
export const RENEW_GROUPS = command(
  "renew_groups_v1",
  `
DECLARE
  r record;
  renewed boolean[] := array_fill(false, ARRAY[json_array_length(requests::json)]);
  setting text;
BEGIN
  PERFORM lockweave.check_v1(timeout_ms);
  ${MUST_LAST}
  FOR r IN
    SELECT * FROM ROWS FROM (
      json_to_recordset(requests::json) AS (id uuid, renewals integer, lock_ms double precision, ended json)
    ) WITH ORDINALITY AS q(id, renewals, lock_ms, ended, position) ORDER BY q.id
  LOOP
    PERFORM FROM lockweave.renewal_group g WHERE g.id = r.id FOR NO KEY UPDATE;
    UPDATE lockweave.renewal_group g
      SET expires_at = greatest(g.expires_at, clock_timestamp() + lockweave.duration_v1(r.lock_ms)), renewals = g.renewals + 1
      WHERE g.id = r.id AND g.renewals = r.renewals AND g.expires_at > clock_timestamp() AND NOT EXISTS (
        SELECT FROM json_to_recordset(r.ended) e(key text, request_id text) WHERE (
          SELECT true FROM lockweave.hold h WHERE h.key = e.key AND h.holder = e.request_id AND NOT h.is_released));
    renewed[r.position] := FOUND;
  END LOOP;
  RETURN array_to_json(renewed);
END
`,
);
