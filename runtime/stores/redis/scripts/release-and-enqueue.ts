import { QUEUE } from "./queue";
import { script } from "./script";
import { SERVER_TIME } from "./server-time";
import { TOKEN } from "./token";
import { REVOKED } from "./values";

/**
 * Ends a hold, and enqueues a waiter of the same process at the end of the queue.
 *
 * KEYS: lock, queue, and the fence if a fencing token is requested. ARGV: the requestId of the hold; of the waiter: ticket, inbox,
 * requestId, lock time in ms; "1" if PUBLISH counts all subscribers.
 *
 * Reply: { 1, token } if the waiter acquired the key, { 2 } if it is enqueued, { 3 } if it cannot be enqueued and the key is free. The
 * third element of each is 1 if a PUBLISH was denied. Otherwise { 0, the value of the key }.
 */
export const RELEASE_AND_ENQUEUE = script(
  SERVER_TIME,
  TOKEN,
  QUEUE,
  REVOKED,
  `
local holder = redis.pcall("GET", KEYS[1])
if holder ~= ARGV[1] and holder ~= revoked_from(ARGV[1]) then
  return { 0, holder }
end
local function enqueue_and_pass_on()
  local waiter = ARGV[2] .. " " .. ARGV[3]
  if redis.call("EXISTS", KEYS[2]) == 1 then
    keep_ticket(KEYS[2], waiter)
    local chosen = choose(KEYS[2], ARGV[6], waiter)
    if not chosen then
      redis.call("DEL", KEYS[1]) -- Dead waiters are left in front. Later calls remove them.
      return { 2, false, publish_is_denied }
    end
    if chosen ~= waiter then
      reserve(KEYS[1], KEYS[2], chosen)
      return { 2, false, publish_is_denied }
    end
    forget(KEYS[2], waiter)
  end
  local token = KEYS[3] and draw_token(KEYS[3], ARGV[5])
  redis.call("SET", KEYS[1], ARGV[4], "PX", ARGV[5])
  return { 1, token or false, publish_is_denied }
end
local done, reply = pcall(enqueue_and_pass_on)
if done then
  return reply
end
redis.call("DEL", KEYS[1])
return { 3, false, publish_is_denied }
`,
);
