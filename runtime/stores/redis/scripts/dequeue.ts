import { reservedFor, SHARED } from "../../value";
import { QUEUE } from "./queue";
import { script } from "./script";
import { SERVER_TIME } from "./server-time";

/**
 * Removes a waiter from the queue. If the key is reserved for it, reserves the key for the next waiter or frees it. If the key is shared,
 * notifies the next waiter, which may have room now.
 *
 * KEYS: lock, queue. ARGV: ticket, inbox, "1" if PUBLISH counts all subscribers, the earlier inbox of the ticket if it differs.
 *
 * Reply: 1, or 2 if a PUBLISH was denied.
 */
export const DEQUEUE = script(
  SERVER_TIME,
  QUEUE,
  `
local was_queued = forget(KEYS[2], ARGV[1] .. " " .. ARGV[2]) > 0
if ARGV[4] then
  was_queued = forget(KEYS[2], ARGV[1] .. " " .. ARGV[4]) > 0 or was_queued
end
local value = redis.pcall("GET", KEYS[1])
if value == "${reservedFor("")}" .. ARGV[1] then
  pass_on(KEYS[1], KEYS[2], ARGV[3])
elseif was_queued and type(value) == "string" and string.sub(value, 1, ${SHARED.length}) == "${SHARED}" then
  choose(KEYS[2], ARGV[3])
end
return 1 + publish_is_denied
`,
);
