import { closedAfter } from "../../value";
import { QUEUE } from "./queue";
import { script } from "./script";
import { SERVER_TIME } from "./server-time";
import { MANY, VALUES } from "./values";

/**
 * Ends a hold: the key is reserved for the next, or free.
 *
 * KEYS: lock, queue. ARGV: requestId, "1" where PUBLISH counts all who listen.
 *
 * Reply: 1 where it was dropped, 2 where besides a PUBLISH was denied, otherwise { what it holds }.
 */
export const DROP = script(
  `
local holder = redis.pcall("GET", KEYS[1])
if holder ~= ARGV[1] then
  return { holder }
end
if redis.call("EXISTS", KEYS[2]) == 0 then
  redis.call("DEL", KEYS[1])
  return 1
end
`,
  // Where nobody waits, nothing is made that is for those who do.
  SERVER_TIME,
  QUEUE,
  `
pass_on(KEYS[1], KEYS[2], ARGV[2])
return 1 + publish_is_denied
`,
);

/**
 * The same where there can be no queue.
 *
 * KEYS: lock. ARGV: requestId.
 *
 * Reply: 1 where it was dropped, otherwise { what it holds }.
 */
export const DROP_ALONE = script(`
local holder = redis.pcall("GET", KEYS[1])
if holder ~= ARGV[1] then
  return { holder }
end
redis.call("DEL", KEYS[1])
return 1
`);

/**
 * Ends many holds. The error of one key is its own: what was done for another before it is told.
 *
 * KEYS: the locks, then the queue of each. ARGV: their requestIds, "1" where PUBLISH counts all who listen.
 *
 * Reply: for each as that of DROP, or its error.
 */
export const DROP_MANY = script(
  MANY,
  VALUES,
  SERVER_TIME,
  QUEUE,
  `
local count = #KEYS / 2
local replies, ours = {}, {}
local holders = redis.call("MGET", unpack(KEYS, 1, count))
local nobody_waits = redis.call("EXISTS", unpack(KEYS, count + 1)) == 0
for index = 1, count do
  local lock = KEYS[index]
  if holders[index] ~= id_of(index) then
    replies[index] = found(lock)
  elseif nobody_waits then
    ours[#ours + 1] = lock
    replies[index] = 1
  else
    local done, failure = pcall(pass_on, lock, KEYS[count + index], ARGV[2])
    if done then
      replies[index] = 1 + publish_is_denied
    else
      replies[index] = type(failure) == "table" and failure or redis.error_reply(failure)
    end
  end
end
if #ours > 0 then
  redis.call("DEL", unpack(ours))
end
return replies
`,
);

/**
 * Ends a hold, and closes the key for a time. Those who wait find it when they look again.
 *
 * KEYS: lock. ARGV: requestId, for how long in ms.
 *
 * Reply: 1 where it is closed, otherwise { what it holds }.
 */
export const CLOSE = script(`
local holder = redis.pcall("GET", KEYS[1])
local closed = "${closedAfter("")}" .. ARGV[1]
if holder == closed then
  return 1
end
if holder ~= ARGV[1] then
  return { holder }
end
redis.call("SET", KEYS[1], closed, "PX", ARGV[2])
return 1
`);
