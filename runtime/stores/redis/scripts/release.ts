import { closedAfter } from "../../value";
import { QUEUE } from "./queue";
import { script } from "./script";
import { SERVER_TIME } from "./server-time";
import { ERROR_OF, MANY, REVOKED, REWRITE, VALUES } from "./values";

/**
 * Ends a hold. Reserves the key for the next waiter, or frees it.
 *
 * KEYS: lock, queue. ARGV: requestId, "1" if PUBLISH counts all subscribers.
 *
 * Reply: 1 if the hold was released, 2 if it was released and a PUBLISH was denied, otherwise { the value of the key }.
 */
export const RELEASE = script(
  `
local holder = redis.pcall("GET", KEYS[1])
local is_held = holder == ARGV[1]
if is_held and redis.call("EXISTS", KEYS[2]) == 0 then
  redis.call("DEL", KEYS[1])
  return 1
end
`,
  // These functions come after the first return, so the server does not create them if nobody is waiting.
  REVOKED,
  `
if not is_held and holder ~= revoked_from(ARGV[1]) then
  return { holder }
end
`,
  SERVER_TIME,
  QUEUE,
  `
pass_on(KEYS[1], KEYS[2], ARGV[2])
return 1 + publish_is_denied
`,
);

/**
 * Ends a hold and frees the key, without using the queue.
 *
 * KEYS: lock. ARGV: requestId.
 *
 * Reply: 1 if the hold was released, otherwise { the value of the key }.
 */
export const RELEASE_ALONE = script(
  REVOKED,
  `
local holder = redis.pcall("GET", KEYS[1])
if holder ~= ARGV[1] and holder ~= revoked_from(ARGV[1]) then
  return { holder }
end
redis.call("DEL", KEYS[1])
return 1
`,
);

/**
 * Ends many holds. An error of one key does not affect the others.
 *
 * KEYS: the locks, then their queues. ARGV: the requestIds in one string, "1" if PUBLISH counts all subscribers.
 *
 * Reply: 1 if all holds were released and nobody is waiting. Otherwise for each key the reply of RELEASE, or an error.
 */
export const RELEASE_MANY = script(
  MANY,
  VALUES,
  ERROR_OF,
  SERVER_TIME,
  REVOKED,
  QUEUE,
  `
local count = #KEYS / 2
local replies, ours, passed_on = {}, {}, {}
local holders = redis.call("MGET", unpack(KEYS, 1, count))
local nobody_waits = redis.call("EXISTS", unpack(KEYS, count + 1)) == 0
for index = 1, count do
  local lock = KEYS[index]
  local holder, id = holders[index], id_of(index)
  if holder ~= id and holder ~= revoked_from(id) then
    replies[index] = found(lock)
  elseif nobody_waits then
    ours[#ours + 1] = lock
    replies[index] = 1
  elseif passed_on[lock] then
    replies[index] = found(lock) -- The batch names this hold twice.
  else
    passed_on[lock] = true
    local done, failure = pcall(pass_on, lock, KEYS[count + index], ARGV[2])
    replies[index] = done and 1 + publish_is_denied or error_of(failure)
  end
end
if #ours > 0 then
  redis.call("DEL", unpack(ours))
end
return #ours == count and 1 or replies
`,
);

/**
 * Ends a hold, and closes the key for a time. Nobody is notified: waiters find the key free when they ask again after that time.
 *
 * KEYS: lock. ARGV: requestId, how long the key stays closed in ms.
 *
 * Reply: 1 if the key is closed, otherwise { the value of the key }.
 */
export const CLOSE = script(
  REVOKED,
  REWRITE,
  `
local holder = redis.pcall("GET", KEYS[1])
local closed = "${closedAfter("")}" .. ARGV[1]
if holder == closed then
  return 1
end
if holder ~= ARGV[1] and holder ~= revoked_from(ARGV[1]) then
  return { holder }
end
rewrite(KEYS[1], closed, ARGV[2])
return 1
`,
);
