import { closedAfter } from "../../value";
import { command, eachOtherReply, helper, nameOfRequest, plainCommand, repliesOf } from "./routine";
import { IS_ALIVE } from "./state";
import { BOUND_WAITS, canBeginAtOnce, MAY_BE_LOST } from "./transaction";

const RELEASED = '{"released":true}';

/**
 * Selects the row of an exclusive hold for which nobody waits. It skips a row that a transaction guards.
 */
const plainHold = (key: string, requestId: string): string => `
    SELECT h.ctid FROM lockweave.hold h
    WHERE h.key = ${key} AND h.holder = ${requestId} AND h.permit_limit IS NULL AND ${IS_ALIVE}
      AND (SELECT true FROM lockweave.waiter w WHERE w.key = ${key} LIMIT 1) IS NULL
    FOR UPDATE OF h SKIP LOCKED`;

/**
 * Ends each hold, even a revoked one, and passes the key on. With `cooldown_ms`, keeps the key closed to everybody instead.
 *
 * Reply for each: whether it was released; or the value of the key.
 */
export const RELEASE = [
  // Ends a hold, and returns whether there was one. If a transaction guards the hold, its row stays, and the key is free when that
  // transaction ends.
  helper(
    "end_hold_v1(lock_key text, request_id text)",
    "boolean",
    `
BEGIN
  DELETE FROM lockweave.hold o WHERE o.key = lock_key AND o.holder = (
    SELECT h.holder FROM lockweave.hold h
    WHERE h.key = lock_key AND h.holder = request_id AND ${IS_ALIVE} FOR UPDATE SKIP LOCKED);
  IF FOUND THEN
    RETURN true;
  END IF;
  UPDATE lockweave.hold h SET is_released = true
    WHERE h.key = lock_key AND h.holder = request_id AND ${IS_ALIVE};
  RETURN FOUND;
END
`,
  ),
  helper(
    "not_released_v1(lock_key text)",
    "text",
    `
BEGIN
  RETURN json_build_object('released', false, 'holder', (lockweave.read_key_v1(lock_key)).value);
END
`,
  ),
  helper(
    "release_one_v1(r lockweave.request_v1)",
    "text",
    `
DECLARE
  closed CONSTANT text := '${closedAfter("")}' || r.request_id;
BEGIN
  IF r.cooldown_ms IS NOT NULL AND lockweave.own_v1(r.key, closed) IS NOT NULL THEN
    RETURN '${RELEASED}'; -- The command ran twice.
  END IF;
  IF NOT lockweave.end_hold_v1(r.key, r.request_id) THEN
    RETURN lockweave.not_released_v1(r.key);
  END IF;
  IF r.cooldown_ms IS NULL THEN
    PERFORM lockweave.remove_over_v1(r.key);
    PERFORM lockweave.pass_on_v1(r.key);
  ELSE
    INSERT INTO lockweave.hold AS h (key, holder, expires_at)
      VALUES (r.key, closed, clock_timestamp() + lockweave.duration_v1(r.cooldown_ms))
      ON CONFLICT (key, holder) DO UPDATE SET expires_at = excluded.expires_at;
  END IF;
  RETURN '${RELEASED}';
END
`,
  ),
  command(
    "release_v1",
    `
DECLARE
  all_requests CONSTANT lockweave.request_v1[] := lockweave.begin_v1(requests, timeout_ms);
  r lockweave.request_v1;
  plain text[];
  reply text;
  replies text[] := '{}';
  has_cooldown boolean := false;
  setting text;
BEGIN
  IF cardinality(all_requests) > 1 THEN
    WITH released AS (
      DELETE FROM lockweave.hold o
        WHERE o.ctid = ANY (ARRAY(
          SELECT (${plainHold("q.key", "q.request_id")}) FROM unnest(all_requests) q
          WHERE q.cooldown_ms IS NULL AND q.is_busy IS NOT TRUE))
        RETURNING ${nameOfRequest("o.key", "o.holder")} AS request
    )
    SELECT array_agg(d.request) INTO plain FROM released d;
  END IF;
  ${eachOtherReply("lockweave.release_one_v1(r)", RELEASED, "has_cooldown := has_cooldown OR r.cooldown_ms IS NOT NULL;")}
  IF NOT has_cooldown THEN
    ${MAY_BE_LOST}
  END IF;
  RETURN ${repliesOf("replies")};
END
`,
  ),
  // Ends an exclusive hold for which nobody waits.
  plainCommand(
    "release_plain_v1(lock_key text, request_id text, timeout_ms integer)",
    `
DECLARE
  setting text;
BEGIN
  ${BOUND_WAITS}
  IF ${canBeginAtOnce("lock_key")} THEN
    DELETE FROM lockweave.hold o WHERE o.ctid = (${plainHold("lock_key", "request_id")});
    IF FOUND THEN
      ${MAY_BE_LOST}
      RETURN '[${RELEASED}]';
    END IF;
  END IF;
  RETURN lockweave.release_v1(
    json_build_array(json_build_object('key', lock_key, 'request_id', request_id))::text, timeout_ms);
END
`,
  ),
].join("");

/**
 * Releases a hold, and enqueues the next caller. If that is the first one in the queue, it acquires the key. Otherwise the key is
 * reserved for the first waiter. If the hold has already ended, nothing changes.
 *
 * The requests: the hold, and the request of the next caller. Reply: whether the hold was released, or the value of the key; and in
 * `next` the grant if there is one.
 */
export const RELEASE_AND_ENQUEUE = command(
  "release_and_enqueue_v1",
  `
DECLARE
  all_requests CONSTANT lockweave.request_v1[] := lockweave.begin_v1(requests, timeout_ms);
  held CONSTANT lockweave.request_v1 := all_requests[1];
  r CONSTANT lockweave.request_v1 := all_requests[2];
  first lockweave.first_waiter_v1;
  grant_reply text;
  setting text;
BEGIN
  IF NOT lockweave.end_hold_v1(held.key, held.request_id) THEN
    ${MAY_BE_LOST}
    RETURN '[' || lockweave.not_released_v1(held.key) || ']';
  END IF;
  PERFORM lockweave.keep_ticket_v1(r);
  PERFORM lockweave.remove_over_v1(held.key);
  first := lockweave.first_waiter_v1(held.key);
  IF EXISTS (SELECT FROM lockweave.hold h WHERE h.key = held.key) THEN
    PERFORM lockweave.wake_v1(first); -- A transaction guards a hold.
  ELSIF first.ticket = r.ticket THEN
    grant_reply := lockweave.grant_in_turn_v1(r, NULL);
  ELSIF first.ticket IS NOT NULL THEN
    PERFORM lockweave.reserve_v1(held.key, first);
  END IF;
  IF grant_reply IS NULL THEN
    ${MAY_BE_LOST}
  END IF;
  RETURN ${repliesOf("ARRAY[json_build_object('released', true, 'next', grant_reply::json)::text]")};
END
`,
);
