import { CLAIM_TIME_MS } from "../../port";
import { reservedFor } from "../../value";
import { NOTE_GRANT } from "./acquire";
import { command, eachReply, helper, repliesOf } from "./routine";
import { sweep } from "./sweep";
import { MAY_BE_LOST } from "./transaction";

/** The time until a waiter asks again if only a guard keeps the key. Nobody can notify it when that transaction ends. */
const POLL_MS = "50 + 200 * random()";

/**
 * Acquires each key if it is the turn of the ticket. Otherwise enqueues the ticket, or keeps its position.
 *
 * Reply for each: see `grant_v1` and `refuse_v1`.
 */
export const ENQUEUE = [
  helper(
    "grant_in_turn_v1(r lockweave.request_v1, state lockweave.key_state_v1)",
    "text",
    `
DECLARE
  reply text;
BEGIN
  DELETE FROM lockweave.waiter w WHERE w.key = r.key AND w.ticket = r.ticket;
  reply := lockweave.grant_v1(r, state);
  IF r.permit_limit IS NOT NULL AND lockweave.room_v1(lockweave.read_key_v1(r.key), r.permit_limit) > 0 THEN
    PERFORM lockweave.wake_v1(lockweave.first_waiter_v1(r.key));
  END IF;
  RETURN reply;
END
`,
  ),
  // The time until the first waiter should ask again, in ms. A reader or an exclusive caller waits for the last hold, and any other for the first.
  helper(
    "free_in_v1(state lockweave.key_state_v1, permit_limit integer)",
    "bigint",
    `
DECLARE
  ends timestamptz := CASE WHEN permit_limit > 0 AND state.least_limit > 0 THEN state.first_ends ELSE state.last_ends END;
  left_ms bigint := ceil(extract(epoch FROM ends - clock_timestamp()) * 1000);
BEGIN
  IF state.is_over OR left_ms <= 0 THEN
    RETURN round(${POLL_MS});
  END IF;
  RETURN left_ms;
END
`,
  ),
  helper(
    "enqueue_one_v1(r lockweave.request_v1)",
    "text",
    `
DECLARE
  state lockweave.key_state_v1 := lockweave.read_key_v1(r.key);
  first lockweave.first_waiter_v1;
  own text;
  has_room boolean;
BEGIN
  IF state.is_shared AND r.permit_limit IS NOT NULL THEN
    own := lockweave.own_v1(r.key, r.request_id);
  ELSIF state.value = r.request_id THEN
    own := state.value;
  END IF;
  IF own IS NOT NULL THEN
    RETURN lockweave.refuse_v1(own, NULL, false); -- The command ran twice.
  END IF;
  IF state.value = '${reservedFor("")}' || r.ticket THEN
    DELETE FROM lockweave.hold h WHERE h.key = r.key AND h.holder = state.value;
    RETURN lockweave.grant_in_turn_v1(r, NULL);
  END IF;
  PERFORM lockweave.keep_ticket_v1(r);
  has_room := lockweave.room_v1(state, r.permit_limit) > 0;
  IF state.value IS NULL OR has_room THEN
    IF r.permit_limit = 0 AND has_room AND lockweave.only_readers_wait_v1(r.key) THEN
      RETURN lockweave.grant_in_turn_v1(r, state);
    END IF;
    first := lockweave.first_waiter_v1(r.key);
    IF first.ticket = r.ticket THEN
      RETURN lockweave.grant_in_turn_v1(r, state);
    ELSIF has_room THEN
      PERFORM lockweave.wake_v1(first);
    ELSIF first.ticket IS NOT NULL THEN
      PERFORM lockweave.reserve_v1(r.key, first);
      state.value := '${reservedFor("")}' || first.ticket;
      state.is_over := false;
      state.last_ends := clock_timestamp() + interval '${CLAIM_TIME_MS} ms';
    END IF;
  END IF;
  first := lockweave.first_waiter_v1(r.key);
  RETURN lockweave.refuse_v1(
    state.value,
    CASE WHEN first.ticket = r.ticket THEN lockweave.free_in_v1(state, r.permit_limit) WHEN first.is_after_dead THEN 1 END,
    r.permit_limit IS NOT NULL AND r.ticket = (
      SELECT w.ticket FROM lockweave.waiter w WHERE w.key = r.key ORDER BY w.turn DESC LIMIT 1)
  );
END
`,
  ),
  command(
    "enqueue_v1",
    `
DECLARE
  all_requests CONSTANT lockweave.request_v1[] := lockweave.begin_v1(requests, timeout_ms);
  r lockweave.request_v1;
  reply text;
  replies text[] := '{}';
  is_granted boolean := false;
  setting text;
BEGIN
  ${eachReply("lockweave.enqueue_one_v1(r)", NOTE_GRANT)}
  ${sweep("cardinality(all_requests)")}
  IF NOT is_granted THEN
    ${MAY_BE_LOST}
  END IF;
  RETURN ${repliesOf("replies")};
END
`,
  ),
].join("");

/**
 * Removes each waiter from its queue. If the key is reserved for it, reserves the key for the next waiter. If the key is shared, wakes the
 * next waiter, which may have room now.
 */
export const DEQUEUE = command(
  "dequeue_v1",
  `
DECLARE
  all_requests CONSTANT lockweave.request_v1[] := lockweave.begin_v1(requests, timeout_ms);
  r lockweave.request_v1;
  was_queued boolean;
  setting text;
BEGIN
  FOREACH r IN ARRAY all_requests LOOP
    DELETE FROM lockweave.waiter w WHERE w.key = r.key AND w.ticket = r.ticket;
    was_queued := FOUND;
    DELETE FROM lockweave.hold h WHERE h.key = r.key AND h.holder = '${reservedFor("")}' || r.ticket;
    IF FOUND OR (was_queued AND (lockweave.read_key_v1(r.key)).is_shared) THEN
      PERFORM lockweave.pass_on_v1(r.key);
    END IF;
  END LOOP;
  ${MAY_BE_LOST}
  RETURN ${repliesOf("'{}'::text[]")};
END
`,
);
