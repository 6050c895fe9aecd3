import { command, eachOtherReply, helper, nameOfRequest, plainCommand } from "./routine";
import { sweep } from "./sweep";
import { BOUND_WAITS, canBeginAtOnce, MAY_BE_LOST, MUST_LAST } from "./transaction";

/** Whether a key has no row at all. A subquery leaves the planner no choice but the index. */
const hasNoRow = (key: string): string =>
  `(SELECT true FROM lockweave.hold h WHERE h.key = ${key} LIMIT 1) IS NULL`;

/** Notes whether anything must survive a crash of the server. */
export const NOTE_GRANT = "is_granted := is_granted OR coalesce((reply::json->>'granted')::boolean, false);";

const PLAIN_GRANT = '{"granted":true,"count":1}';

/**
 * Acquires each key that is free. Also acquires each key that is shared and has room, if nobody is waiting. Readers may pass waiting
 * readers.
 *
 * Reply for each: see `grant_v1` and `refuse_v1`.
 */
export const ACQUIRE = [
  helper(
    "acquire_one_v1(r lockweave.request_v1)",
    "text",
    `
DECLARE
  state lockweave.key_state_v1 := lockweave.read_key_v1(r.key);
  own text;
BEGIN
  IF state.value IS NULL THEN
    RETURN lockweave.grant_v1(r, state);
  END IF;
  IF state.is_shared THEN
    own := lockweave.own_v1(r.key, r.request_id);
    IF own IS NULL AND lockweave.room_v1(state, r.permit_limit) > 0
        AND NOT lockweave.must_wait_v1(r.key, r.permit_limit) THEN
      RETURN lockweave.grant_v1(r, state);
    END IF;
  END IF;
  RETURN lockweave.refuse_v1(coalesce(own, state.value), NULL, false);
END
`,
  ),
  command(
    "acquire_v1",
    `
DECLARE
  all_requests CONSTANT lockweave.request_v1[] := lockweave.begin_v1(requests, timeout_ms);
  r lockweave.request_v1;
  plain text[];
  reply text;
  replies text[] := '{}';
  is_granted boolean := false;
  setting text;
BEGIN
  IF cardinality(all_requests) > 1 THEN
    WITH granted AS (
      INSERT INTO lockweave.hold (key, holder, expires_at)
        SELECT DISTINCT ON (q.key) q.key, q.request_id, clock_timestamp() + make_interval(secs => q.lock_ms / 1000)
        FROM unnest(all_requests) WITH ORDINALITY q
        WHERE q.permit_limit IS NULL AND NOT q.fencing AND q.is_busy IS NOT TRUE AND ${hasNoRow("q.key")}
        ORDER BY q.key, q.ordinality
      RETURNING ${nameOfRequest("key", "holder")} AS request
    )
    SELECT array_agg(g.request) INTO plain FROM granted g;
  END IF;
  ${eachOtherReply("lockweave.acquire_one_v1(r)", PLAIN_GRANT, NOTE_GRANT)}
  ${sweep("cardinality(all_requests)")}
  IF plain IS NULL AND NOT is_granted THEN
    ${MAY_BE_LOST}
  END IF;
  RETURN '[' || array_to_string(replies, ',') || ']';
END
`,
  ),
  // Acquires a key that is free, for an exclusive caller that needs neither a token nor standbys.
  plainCommand(
    "acquire_plain_v1(lock_key text, request_id text, lock_ms double precision, timeout_ms integer)",
    `
DECLARE
  setting text;
BEGIN
  ${BOUND_WAITS}
  IF ${canBeginAtOnce("lock_key")} THEN
    INSERT INTO lockweave.hold (key, holder, expires_at)
      SELECT lock_key, request_id, clock_timestamp() + make_interval(secs => lock_ms / 1000) WHERE ${hasNoRow("lock_key")};
    IF FOUND THEN
      ${sweep("1")}
      ${MUST_LAST}
      RETURN '[${PLAIN_GRANT}]';
    END IF;
  END IF;
  RETURN lockweave.acquire_v1(json_build_array(json_build_object(
    'key', lock_key, 'request_id', request_id, 'lock_ms', lock_ms, 'fencing', false))::text, timeout_ms);
END
`,
  ),
].join("");
