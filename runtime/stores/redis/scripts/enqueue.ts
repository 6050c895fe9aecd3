import { reservedFor } from "../../value";
import { QUEUE } from "./queue";
import { script } from "./script";
import { SERVER_TIME } from "./server-time";
import { TOKEN } from "./token";
import { ERROR_OF, MANY, OF_ALL } from "./values";

/** Needs the server's time and the queue; with a `fence` also the tokens. */
const PLACE_ONE = `
local function place_one(lock, queue, fence, place, inbox, id, lock_time, counts, before)
  local waiter = place .. " " .. inbox
  local function take()
    local token = fence and draw_token(fence, lock_time)
    forget(queue, waiter)
    redis.call("SET", lock, id, "PX", lock_time)
    return { 1, token }
  end
  local holder = redis.call("GET", lock)
  if holder == id then
    return { 0, holder, -1, 0 }
  end
  if holder == "${reservedFor("")}" .. place then
    return take()
  end
  keep_place(queue, waiter, before and place .. " " .. before)
  if not holder then
    local chosen = choose(queue, counts, waiter)
    if chosen == waiter then
      return take()
    end
    holder = chosen and reserve(lock, queue, chosen) or false
  end
  local is_first = first_after(queue, 0) == waiter
  return { 0, holder, is_first and redis.call("PTTL", lock) or ask_again_in(), publish_is_denied }
end
`;

/**
 * Takes the key whose turn it is to have it, or keeps the place of one who waits.
 *
 * KEYS: lock, queue, and for a fencing token fence. ARGV: place, inbox, requestId, lock time in ms, "1" where PUBLISH
 * counts all who listen, the inbox that the place had where that was another one.
 *
 * Reply: { 1, token } where it was taken. Otherwise { 0, what it holds, its time to live in ms where the place is the
 * first, 1 where dead waiters are left before it, and -1 elsewhere; 1 where a PUBLISH was denied }.
 */
export const ENQUEUE = script(
  SERVER_TIME,
  TOKEN,
  QUEUE,
  PLACE_ONE,
  `return place_one(KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6])`,
);

/**
 * The same for many keys, without fencing tokens. The error of one key is its own.
 *
 * KEYS: the locks, then the queue of each. ARGV: their requestIds; the lock times in ms, or one for all; their places, the inbox, "1" where
 * PUBLISH counts all who listen.
 *
 * Reply: for each as that of PLACE, or its error; where the server takes no writes, that alone.
 */
export const ENQUEUE_MANY = script(
  MANY,
  ERROR_OF,
  OF_ALL,
  SERVER_TIME,
  QUEUE,
  PLACE_ONE,
  `
local counts, inbox, places = table.remove(ARGV), table.remove(ARGV), table.remove(ARGV)
local count = #KEYS / 2
local replies = {}
for index = 1, count do
  local place = string.sub(places, 32 * index - 31, 32 * index)
  local lock, queue = KEYS[index], KEYS[count + index]
  local done, reply = pcall(place_one, lock, queue, nil, place, inbox, id_of(index), lock_time_of(index), counts)
  replies[index] = done and reply or error_of(reply)
end
return of_all(replies)
`,
);
