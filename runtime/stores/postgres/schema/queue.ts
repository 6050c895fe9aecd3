import { CLAIM_TIME_MS, MOST_DEAD_AT_ONCE, TICKET_TIME_MS } from "../../port";
import { reservedFor } from "../../value";
import { helper, WAKE_UPS } from "./routine";

/** Functions for the queue of a key. Only functions that have the advisory lock of the key may call them. */
export const QUEUE = [
  // Returns the first waiter that asked in time. Removes dead waiters in front of it.
  helper(
    "first_waiter_v1(lock_key text)",
    "lockweave.first_waiter_v1",
    `
DECLARE
  first record;
  dead bigint;
BEGIN
  SELECT w.ticket, w.inbox, w.turn, w.before INTO first FROM (
    SELECT f.*, row_number() OVER (ORDER BY f.turn) - 1 AS before FROM lockweave.waiter f
    WHERE f.key = lock_key ORDER BY f.turn LIMIT ${MOST_DEAD_AT_ONCE + 1}
  ) w WHERE w.expires_at > clock_timestamp() ORDER BY w.turn LIMIT 1;
  IF FOUND THEN
    IF first.before > 0 THEN
      DELETE FROM lockweave.waiter w WHERE w.key = lock_key AND w.turn < first.turn;
    END IF;
    RETURN ROW(first.ticket, first.inbox, false)::lockweave.first_waiter_v1;
  END IF;
  DELETE FROM lockweave.waiter o WHERE o.key = lock_key AND o.turn = ANY (ARRAY(
    SELECT w.turn FROM lockweave.waiter w WHERE w.key = lock_key ORDER BY w.turn LIMIT ${MOST_DEAD_AT_ONCE}
  ));
  GET DIAGNOSTICS dead = ROW_COUNT;
  RETURN ROW(NULL, NULL,
    dead = ${MOST_DEAD_AT_ONCE} AND EXISTS (SELECT FROM lockweave.waiter w WHERE w.key = lock_key))::lockweave.first_waiter_v1;
END
`,
  ),
  helper(
    "only_readers_wait_v1(lock_key text)",
    "boolean",
    `
BEGIN
  RETURN NOT EXISTS (
    SELECT FROM lockweave.waiter w WHERE w.key = lock_key AND NOT w.is_reader AND w.expires_at > clock_timestamp());
END
`,
  ),
  // Whether there is a waiter that a caller with this limit of permits must not overtake.
  helper(
    "must_wait_v1(lock_key text, permit_limit integer)",
    "boolean",
    `
DECLARE
  first lockweave.first_waiter_v1;
BEGIN
  IF NOT EXISTS (SELECT FROM lockweave.waiter w WHERE w.key = lock_key) THEN
    RETURN false;
  ELSIF permit_limit = 0 AND lockweave.only_readers_wait_v1(lock_key) THEN
    RETURN false;
  END IF;
  first := lockweave.first_waiter_v1(lock_key);
  RETURN first.ticket IS NOT NULL OR first.is_after_dead;
END
`,
  ),
  helper(
    "keep_ticket_v1(r lockweave.request_v1)",
    "void",
    `
DECLARE
  deadline timestamptz := clock_timestamp() + interval '${TICKET_TIME_MS} ms';
BEGIN
  UPDATE lockweave.waiter w
    SET expires_at = deadline, inbox = r.inbox, is_reader = w.is_reader OR coalesce(r.permit_limit = 0, false)
    WHERE w.key = r.key AND w.ticket = r.ticket;
  IF NOT FOUND THEN
    INSERT INTO lockweave.waiter (key, turn, ticket, inbox, is_reader, expires_at)
    VALUES (r.key, coalesce((SELECT max(w.turn) FROM lockweave.waiter w WHERE w.key = r.key), 0) + 1,
      r.ticket, r.inbox, coalesce(r.permit_limit = 0, false), deadline);
  END IF;
END
`,
  ),
  // Notes that a waiter must be notified. The reply of the command contains the note: see `repliesOf`.
  helper(
    "wake_v1(first lockweave.first_waiter_v1)",
    "void",
    `
BEGIN
  IF first.inbox <> '' THEN
    PERFORM set_config('${WAKE_UPS}', concat_ws(',', nullif(current_setting('${WAKE_UPS}', true), ''),
      json_build_array(first.inbox, first.ticket)), true);
  END IF;
END
`,
  ),
  helper(
    "reserve_v1(lock_key text, first lockweave.first_waiter_v1)",
    "void",
    `
BEGIN
  DELETE FROM lockweave.waiter w WHERE w.key = lock_key AND w.ticket = first.ticket;
  INSERT INTO lockweave.hold AS h (key, holder, expires_at)
    VALUES (lock_key, '${reservedFor("")}' || first.ticket, clock_timestamp() + interval '${CLAIM_TIME_MS} ms')
    ON CONFLICT (key, holder) DO UPDATE SET expires_at = excluded.expires_at, is_released = false;
  PERFORM lockweave.wake_v1(first);
END
`,
  ),
  // Reserves a key for its first waiter when a hold has ended. If others still hold the key, only wakes that waiter.
  helper(
    "pass_on_v1(lock_key text)",
    "void",
    `
DECLARE
  first lockweave.first_waiter_v1;
BEGIN
  IF NOT EXISTS (SELECT FROM lockweave.waiter w WHERE w.key = lock_key) THEN
    RETURN;
  END IF;
  first := lockweave.first_waiter_v1(lock_key);
  IF first.ticket IS NULL THEN
    RETURN;
  ELSIF EXISTS (SELECT FROM lockweave.hold h WHERE h.key = lock_key) THEN
    PERFORM lockweave.wake_v1(first);
  ELSE
    PERFORM lockweave.reserve_v1(lock_key, first);
  END IF;
END
`,
  ),
].join("");
