import { MOST_DEAD_AT_ONCE } from "../../port";
import { guardedAfter, revokedFrom, sharedByPermits } from "../../value";
import { helper } from "./routine";
import { READERS } from "./tables";

const REVOKED = revokedFrom("x".repeat(32)).replaceAll("x", "");

/** The time at which a hold ends. */
export const ENDS =
  "greatest(h.expires_at, (SELECT g.expires_at FROM lockweave.renewal_group g WHERE g.id = h.group_id))";

/** Whether a hold is over: its time has passed, or it was released. */
const isOver = (ends: string): string => `(h.is_released OR ${ends} <= clock_timestamp())`;
const isAlive = (ends: string): string => `(NOT h.is_released AND ${ends} > clock_timestamp())`;
export const IS_ALIVE = isAlive(ENDS);

/**
 * Whether a hold may be deleted. A group that is over may be renewed at this moment, so its row must be gone. A subquery leaves the planner no
 * choice but the index.
 */
const IS_REMOVABLE = `(h.is_released OR h.expires_at <= clock_timestamp()
      AND (SELECT true FROM lockweave.renewal_group g WHERE g.id = h.group_id) IS NULL)`;

/** The value of a hold, whether it is over or not. */
export const HELD_VALUE = `CASE WHEN h.is_revoked THEN '${REVOKED}' || right(h.holder, -${REVOKED.length}) ELSE h.holder END`;

/** The value of a key that an exclusive hold has. A hold that is over has a row only as long as a transaction locks it. */
const valueOf = (ends: string): string =>
  `CASE WHEN ${isOver(ends)} THEN '${guardedAfter("")}' || h.holder ELSE ${HELD_VALUE} END`;

/**
 * Functions that read the state of a key.
 *
 * `read_key` removes holds that are over, at most ${MOST_DEAD_AT_ONCE} at a time. It leaves those whose rows are locked, which count as held.
 *
 * If a hold is in a renewal group, `remove_over` first deletes the row of the group. Then nobody can renew that group, even if the server's
 * clock steps back. If a renewal or another acquisition has locked that row, the hold counts as held.
 */
export const STATE = [
  helper(
    "value_v1(h lockweave.hold)",
    "text",
    `
BEGIN
  RETURN ${valueOf(ENDS)};
END
`,
  ),
  helper(
    "remove_over_v1(lock_key text)",
    "void",
    `
DECLARE
  group_ids CONSTANT uuid[] := ARRAY(
    SELECT h.group_id FROM lockweave.hold h
    WHERE h.key = lock_key AND h.group_id IS NOT NULL AND NOT h.is_released AND h.expires_at <= clock_timestamp());
BEGIN
  IF cardinality(group_ids) > 0 THEN
    DELETE FROM lockweave.renewal_group o WHERE o.id = ANY (ARRAY(
      SELECT g.id FROM lockweave.renewal_group g
      WHERE g.id = ANY (group_ids) AND g.expires_at <= clock_timestamp() FOR UPDATE SKIP LOCKED));
  END IF;
  DELETE FROM lockweave.hold o WHERE o.key = lock_key AND o.holder = ANY (ARRAY(
    SELECT h.holder FROM lockweave.hold h WHERE h.key = lock_key AND ${IS_REMOVABLE}
    LIMIT ${MOST_DEAD_AT_ONCE} FOR UPDATE SKIP LOCKED
  ));
END
`,
  ),
  helper(
    "read_key_v1(lock_key text)",
    "lockweave.key_state_v1",
    `
DECLARE
  state lockweave.key_state_v1;
  found_rows bigint;
  over bigint;
  alive_value text;
BEGIN
  FOR reading IN 1..2 LOOP
    SELECT count(*), count(*) FILTER (WHERE ${isOver("h.ends")}),
      max(${valueOf("h.ends")}), max(h.holder) FILTER (WHERE ${isAlive("h.ends")} AND NOT h.is_revoked),
      max(h.permit_limit) IS NOT NULL, coalesce(sum(h.permits) FILTER (WHERE h.permit_limit > 0), 0),
      min(h.permit_limit), max(h.permit_limit), min(h.ends), max(h.ends)
    INTO found_rows, over, state.value, alive_value, state.is_shared, state.permits,
      state.least_limit, state.most_limit, state.first_ends, state.last_ends
    FROM (SELECT h.*, ${ENDS} AS ends FROM lockweave.hold h WHERE h.key = lock_key OFFSET 0) h;
    EXIT WHEN over = 0 OR reading = 2;
    PERFORM lockweave.remove_over_v1(lock_key);
  END LOOP;
  state.is_over := over = found_rows;
  IF found_rows = 0 THEN
    RETURN NULL;
  ELSIF state.is_shared THEN
    state.value := CASE state.least_limit WHEN 0 THEN ${READERS} ELSE '${sharedByPermits()}' || state.permits END;
  ELSE
    state.value := coalesce(alive_value, state.value);
  END IF;
  RETURN state;
END
`,
  ),
  // The value of a hold, revoked or not. Null if there is no such hold.
  helper(
    "own_v1(lock_key text, request_id text)",
    "text",
    `
BEGIN
  RETURN (SELECT lockweave.value_v1(h) FROM lockweave.hold h
    WHERE h.key = lock_key AND h.holder = request_id AND ${IS_ALIVE});
END
`,
  ),
  // The permits that are left for a caller. A reader gets 1 or 0.
  helper(
    "room_v1(state lockweave.key_state_v1, permit_limit integer)",
    "bigint",
    `
BEGIN
  IF permit_limit IS NULL OR NOT state.is_shared THEN
    RETURN 0;
  ELSIF permit_limit = 0 OR state.least_limit = 0 THEN
    RETURN (permit_limit = 0 AND state.least_limit = 0)::integer;
  END IF;
  RETURN least(permit_limit, state.least_limit) - state.permits;
END
`,
  ),
].join("");
