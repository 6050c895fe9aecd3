/**
 * Settings of each function that the store calls. Names in a function must not depend on the search path of the caller. PostgreSQL keeps
 * plans, so a plan for a small table must not scan the whole table: the table may grow.
 */
const SETTINGS = `
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET plan_cache_mode = force_generic_plan
  SET jit = off`;

/**
 * Returns the SQL text that creates a function that the store calls. Its parameters are `requests`, a JSON array as text, and `timeout_ms`. It
 * returns JSON as text, because a user may have changed how the client library reads JSON.
 */
export function command(name: string, body: string): string {
  return plainCommand(`${name}(requests text, timeout_ms integer)`, body);
}

/**
 * Returns the SQL text that creates a function for one request of the simplest kind. Its parameters are those of the request, which cost less to
 * read than JSON.
 *
 * @param signature its name, with its parameters in parentheses
 */
export function plainCommand(signature: string, body: string): string {
  return `
CREATE FUNCTION lockweave.${signature} RETURNS text
  LANGUAGE plpgsql VOLATILE${SETTINGS}
AS $function$
${body.trim()}
$function$;
`;
}

/** The setting in which a transaction notes its wake-ups. */
export const WAKE_UPS = "lockweave_notes.wake_ups";

/**
 * Returns the text of the replies, followed by the wake-ups that the command has noted. The caller sends these once the command has committed. A
 * commit that notifies keeps a lock of the whole server. If it also waited for a standby, notifying commits of all databases would wait, too.
 *
 * @param replies an array of JSON texts
 */
export function repliesOf(replies: string): string {
  const wakeUps = `'{"wake_ups":[' || nullif(current_setting('${WAKE_UPS}', true), '') || ']}'`;
  return `'[' || array_to_string(${replies} || (${wakeUps}), ',') || ']'`;
}

/** The reply for a key that a batch has skipped. */
const BUSY = '{"busy":true}';

/**
 * Returns the statements of a command that fill `replies`. Each reply passes through the variable `reply`.
 *
 * @param one the reply for the request `r`, as an expression
 * @param andThen a statement that follows each reply
 */
export function eachReply(one: string, andThen = ""): string {
  return `FOREACH r IN ARRAY all_requests LOOP
    reply := CASE WHEN r.is_busy THEN '${BUSY}' ELSE ${one} END;
    ${andThen}
    replies := replies || reply;
  END LOOP;`;
}

/** Returns the text that names one request of a batch. Its request ID alone does not, if a caller uses one for several keys. */
export function nameOfRequest(key: string, requestId: string): string {
  return `${requestId} || ' ' || ${key}`;
}

/**
 * Does the same for a command that has already carried out the simplest requests in one statement.
 *
 * @param plain the reply for the requests in the variable `plain`, a list of the texts of {@link nameOfRequest}
 */
export function eachOtherReply(one: string, plain: string, andThen?: string): string {
  return `IF cardinality(plain) = cardinality(all_requests) THEN
    replies := array_fill('${plain}'::text, ARRAY[cardinality(plain)]);
  ELSE
    ${eachReply(`CASE WHEN ${nameOfRequest("r.key", "r.request_id")} = ANY (plain) THEN '${plain}' ELSE ${one} END`, andThen)}
  END IF;`;
}

/**
 * Returns the SQL text that creates a function that other functions call.
 *
 * @param signature its name, with its parameters in parentheses
 */
export function helper(signature: string, returns: string, body: string): string {
  return `
CREATE FUNCTION lockweave.${signature} RETURNS ${returns}
  LANGUAGE plpgsql VOLATILE
AS $function$
${body.trim()}
$function$;
`;
}
