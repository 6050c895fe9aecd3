import { reservedFor } from "../../value";
import { QUEUE } from "./queue";
import { script } from "./script";
import { SERVER_TIME } from "./server-time";
import { TOKEN } from "./token";

/**
 * Takes the key whose turn it is to have it, or keeps the place of one who waits.
 *
 * KEYS: lock, queue, and for a fencing token fence. ARGV: place, inbox, requestId, lock time in ms, "1" where PUBLISH
 * counts all who listen, the inbox that the place had where that was another one.
 *
 * Reply: { 1, token } where it was taken. Otherwise { 0, what it holds, its time to live in ms where the place is the
 * first and -1 elsewhere, 1 where a PUBLISH was denied }.
 */
export const PLACE = script(
  SERVER_TIME,
  TOKEN,
  QUEUE,
  `
local waiter = ARGV[1] .. " " .. ARGV[2]
local function take()
  local token = KEYS[3] and draw_token(KEYS[3], ARGV[4])
  forget(KEYS[2], waiter)
  redis.call("SET", KEYS[1], ARGV[3], "PX", ARGV[4])
  return { 1, token }
end
local holder = redis.call("GET", KEYS[1])
if holder == ARGV[3] then
  return { 0, holder, -1, 0 }
end
if holder == "${reservedFor("")}" .. ARGV[1] then
  return take()
end
keep_place(KEYS[2], waiter, ARGV[6] and ARGV[1] .. " " .. ARGV[6])
if not holder then
  local chosen = choose(KEYS[2], ARGV[5], waiter)
  if chosen == waiter then
    return take()
  end
  holder = reserve(KEYS[1], KEYS[2], chosen)
end
local is_first = first_after(KEYS[2], 0) == waiter
return { 0, holder, is_first and redis.call("PTTL", KEYS[1]) or -1, publish_is_denied }
`,
);
