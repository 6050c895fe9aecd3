import { guardIdOf } from "./guard";
import { command } from "./routine";
import { ENDS, HELD_VALUE, IS_ALIVE } from "./state";

// The functions that `lockweave top` and the other commands of the console call. They need only the permission to read the tables.

/**
 * Returns the state of one key, or of all keys that fit a pattern or have waiters, those with the most waiters first.
 *
 * A hold that is over counts while a transaction guards it, and then has -1 ms left.
 *
 * The request: `key`, or `pattern`, a regular expression; and the most keys of each kind, holds of a key, and waiters of a key. Reply:
 * the locks, and the number of all keys that fit.
 */
export const LOCKS = command(
  "locks_v1",
  `
DECLARE
  wanted CONSTANT json := requests::json->0;
  one_key CONSTANT text := wanted->>'key';
  pattern CONSTANT text := wanted->>'pattern';
  most_keys CONSTANT integer := wanted->>'most_keys';
  most_holds CONSTANT integer := wanted->>'most_holds';
  most_waiters CONSTANT integer := wanted->>'most_waiters';
BEGIN
  RETURN (
    WITH guard AS MATERIALIZED (
      SELECT g.id, g.guarded_by FROM lockweave.guards_v1() g
    ), hold AS MATERIALIZED (
      SELECT h.key, ${HELD_VALUE} AS value, g.guarded_by,
        CASE WHEN ${IS_ALIVE} THEN extract(epoch FROM ${ENDS} - clock_timestamp()) * 1000 ELSE -1 END AS left_ms
      FROM lockweave.hold h LEFT JOIN guard g ON g.id = ${guardIdOf("h")}
      WHERE (one_key IS NULL OR h.key = one_key) AND (${IS_ALIVE} OR g.guarded_by IS NOT NULL)
    ), queue AS MATERIALIZED (
      SELECT w.key, count(*) AS waiting FROM lockweave.waiter w
      WHERE (one_key IS NULL OR w.key = one_key) AND w.expires_at > clock_timestamp() GROUP BY w.key
    ), held AS MATERIALIZED (
      SELECT DISTINCT h.key FROM hold h WHERE one_key IS NOT NULL OR h.key ~ pattern
    ), chosen AS MATERIALIZED (
      (SELECT q.key FROM queue q ORDER BY q.waiting DESC, q.key LIMIT most_keys) UNION (SELECT h.key FROM held h ORDER BY h.key LIMIT most_keys)
    ), holds AS MATERIALIZED (
      SELECT h.key, json_agg(json_build_object('value', h.value, 'left_ms', h.left_ms, 'guarded_by', h.guarded_by)) AS holds
      FROM (
        SELECT a.*, row_number() OVER (PARTITION BY a.key ORDER BY a.left_ms DESC) AS place FROM hold a JOIN chosen c ON c.key = a.key
      ) h
      WHERE h.place <= most_holds GROUP BY h.key
    )
    SELECT json_build_array(json_build_object(
      'keys', (SELECT count(*) FROM (SELECT q.key FROM queue q UNION SELECT h.key FROM held h) a),
      'locks', coalesce(json_agg(json_build_object(
        'key', c.key,
        'waiting', coalesce(q.waiting, 0),
        'waiters', CASE WHEN q.waiting > 0 THEN (SELECT json_agg(w.ticket ORDER BY w.turn) FROM (
          SELECT w.ticket, w.turn FROM lockweave.waiter w
          WHERE w.key = c.key AND w.expires_at > clock_timestamp() ORDER BY w.turn LIMIT most_waiters) w) END,
        'holds', h.holds
      ) ORDER BY q.waiting DESC NULLS LAST, c.key), '[]')))
    FROM chosen c LEFT JOIN queue q ON q.key = c.key LEFT JOIN holds h ON h.key = c.key
  );
END
`,
);

/** Returns the announcements of processes, by their numbers, with the ms that they have left. Omits one that is longer than `most` characters. */
export const ANNOUNCEMENTS = command(
  "announcements_v1",
  `
DECLARE
  wanted CONSTANT json := requests::json->0;
BEGIN
  RETURN (
    SELECT coalesce(json_agg(json_build_object(
      'number', p.number, 'about', p.about, 'left_ms', extract(epoch FROM p.expires_at - clock_timestamp()) * 1000)), '[]')
    FROM lockweave.process p
    WHERE p.number IN (SELECT json_array_elements_text(wanted->'numbers'))
      AND p.expires_at > clock_timestamp() AND length(p.about) <= (wanted->>'most')::integer
  );
END
`,
);
