import { closedAfter } from "../../value";
import { QUEUE } from "./queue";
import { script } from "./script";
import { SERVER_TIME } from "./server-time";
import { ERROR_OF, MANY, REVOKED, REWRITE, VALUES } from "./values";

const NOT_OURS = `
if not is_alone then
  return { holder }
end
`;

/**
 * Ends a hold: the key is reserved for the next, or free.
 *
 * KEYS: lock, queue. ARGV: requestId, "1" where PUBLISH counts all who listen.
 *
 * Reply: 1 where it was dropped, 2 where besides a PUBLISH was denied, otherwise { what it holds }.
 */
export const RELEASE = script(
  REVOKED,
  `
local holder = redis.pcall("GET", KEYS[1])
local is_alone = holder == ARGV[1] or holder == revoked_from(ARGV[1])
if is_alone and redis.call("EXISTS", KEYS[2]) == 0 then
  redis.call("DEL", KEYS[1])
  return 1
end
`,
  NOT_OURS,
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
export const RELEASE_ALONE = script(
  REVOKED,
  `
local holder = redis.pcall("GET", KEYS[1])
local is_alone = holder == ARGV[1] or holder == revoked_from(ARGV[1])
`,
  NOT_OURS,
  `
redis.call("DEL", KEYS[1])
return 1
`,
);

/**
 * Ends many holds. The error of one key is its own: what was done for another before it is told.
 *
 * KEYS: the locks, then the queue of each. ARGV: their requestIds, "1" where PUBLISH counts all who listen.
 *
 * Reply: 1 where all were dropped, and no more is to be said. Otherwise for each as that of DROP, or its error.
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
    replies[index] = found(lock) -- The same hold was asked for twice.
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
 * Ends a hold, and closes the key for a time. Those who wait find it when they look again.
 *
 * KEYS: lock. ARGV: requestId, for how long in ms.
 *
 * Reply: 1 where it is closed, otherwise { what it holds }.
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
