import { FENCING_STRIDE } from "../../port";
import { guardedAfter } from "../../value";
import { helper } from "./routine";

/** A fence outlives its hold by this time. So tokens rise even if the server's clock steps back meanwhile. */
const FENCE_TIME = "interval '1 hour'";

/** Functions that give a key to a caller. */
export const GRANT = [
  helper(
    "duration_v1(ms double precision)",
    "interval",
    `
BEGIN
  RETURN make_interval(secs => ms / 1000);
END
`,
  ),
  // Tokens begin with the time in microseconds. So they rise even if the fence is lost, such as after a restore from a backup.
  helper(
    "draw_token_v1(lock_key text, lock_ms double precision)",
    "bigint",
    `
DECLARE
  now_us CONSTANT bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
  deadline CONSTANT timestamptz := clock_timestamp() + lockweave.duration_v1(lock_ms) + ${FENCE_TIME};
  last bigint;
BEGIN
  INSERT INTO lockweave.fence AS f (key, last_token, expires_at)
    VALUES (lock_key, now_us + ${FENCING_STRIDE - 1}, deadline)
    ON CONFLICT (key) DO UPDATE SET
      last_token = greatest(f.last_token + 1, now_us) + ${FENCING_STRIDE - 1},
      expires_at = greatest(f.expires_at, excluded.expires_at)
    RETURNING f.last_token INTO last;
  RETURN last - ${FENCING_STRIDE - 1};
END
`,
  ),
  // Inserts the hold of a key that is free or has room. Replies as JSON.
  helper(
    "grant_v1(r lockweave.request_v1, state lockweave.key_state_v1)",
    "text",
    `
DECLARE
  granted bigint := 1;
  other_limit integer;
  token bigint;
BEGIN
  IF r.permit_limit > 0 THEN
    granted := least(coalesce(r.permits, 1), r.permit_limit);
    IF state.value IS NOT NULL THEN
      granted := least(granted, lockweave.room_v1(state, r.permit_limit));
      other_limit := CASE
        WHEN state.least_limit <> r.permit_limit THEN state.least_limit
        WHEN state.most_limit <> r.permit_limit THEN state.most_limit END;
    END IF;
  END IF;
  INSERT INTO lockweave.hold (key, holder, expires_at, permit_limit, permits)
    VALUES (r.key, r.request_id, clock_timestamp() + lockweave.duration_v1(r.lock_ms), r.permit_limit, granted)
    ON CONFLICT (key, holder) DO NOTHING;
  IF NOT FOUND THEN
    RETURN lockweave.refuse_v1('${guardedAfter("")}' || r.request_id, NULL, false); -- The command ran twice, and its hold is over.
  END IF;
  IF r.fencing AND r.permit_limit IS NULL THEN
    token := lockweave.draw_token_v1(r.key, r.lock_ms);
  END IF;
  RETURN json_build_object('granted', true, 'token', token::text, 'count', granted, 'other_limit', other_limit,
    'waiters', r.permit_limit IS NOT NULL AND lockweave.must_wait_v1(r.key, r.permit_limit));
END
`,
  ),
  helper(
    "refuse_v1(holder text, free_in_ms bigint, is_last boolean)",
    "text",
    `
BEGIN
  RETURN json_build_object('granted', false, 'holder', holder, 'free_in_ms', free_in_ms, 'last', is_last);
END
`,
  ),
].join("");
