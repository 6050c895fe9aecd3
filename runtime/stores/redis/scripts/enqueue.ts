import { reservedFor } from "../../value";
import { QUEUE } from "./queue";
import { script } from "./script";
import { SERVER_TIME } from "./server-time";
import { TOKEN } from "./token";
import { ERROR_OF, MANY, OF_ALL } from "./values";

/** Acquires the key for a waiter, or enqueues the waiter. Needs SERVER_TIME and QUEUE, and TOKEN if there is a fence. */
const ENQUEUE_ONE = `
local function enqueue_one(lock, queue, fence, ticket, inbox, id, lock_time, counts, before)
  local waiter = ticket .. " " .. inbox
  local function acquire()
    local token = fence and draw_token(fence, lock_time)
    forget(queue, waiter)
    redis.call("SET", lock, id, "PX", lock_time)
    return { 1, token }
  end
  local holder = redis.call("GET", lock)
  if holder == id then
    return { 0, holder, -1, 0 }
  end
  if holder == "${reservedFor("")}" .. ticket then
    return acquire()
  end
  keep_ticket(queue, waiter, before and ticket .. " " .. before)
  if not holder then
    local chosen = choose(queue, counts, waiter)
    if chosen == waiter then
      return acquire()
    end
    holder = chosen and reserve(lock, queue, chosen) or false
  end
  local is_first = first_after(queue, 0) == waiter
  return { 0, holder, is_first and redis.call("PTTL", lock) or ask_again_in(), publish_is_denied }
end
`;

/**
 * Acquires the key if it is the turn of the ticket. Otherwise enqueues the ticket or keeps its turn.
 *
 * KEYS: lock, queue, and the fence if a fencing token is requested. ARGV: ticket, inbox, requestId, lock time in ms, "1" if PUBLISH counts
 * all subscribers, the earlier inbox of the ticket if it differs.
 *
 * Reply: { 1, token } if the key was acquired. Otherwise { 0, the value of the key, when to ask again in ms, 1 if a PUBLISH was denied }.
 * The time is the key's time to live if the ticket is the first, 1 if dead waiters are left in front of it, and otherwise -1.
 */
export const ENQUEUE = script(
  SERVER_TIME,
  TOKEN,
  QUEUE,
  ENQUEUE_ONE,
  `return enqueue_one(KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6])`,
);

/**
 * Acquires or enqueues like `ENQUEUE`, but for many keys, and without fencing tokens. An error of one key does not affect the others.
 *
 * KEYS: the locks, then their queues. ARGV: the requestIds in one string; the lock times in ms, or one for all; the tickets in one string;
 * the inbox; "1" if PUBLISH counts all subscribers.
 *
 * Reply: for each key the reply of ENQUEUE, or an error. If the server rejects writes, that error alone.
 */
export const ENQUEUE_MANY = script(
  MANY,
  ERROR_OF,
  OF_ALL,
  SERVER_TIME,
  QUEUE,
  ENQUEUE_ONE,
  `
local counts, inbox, tickets = table.remove(ARGV), table.remove(ARGV), table.remove(ARGV)
local count = #KEYS / 2
local replies = {}
for index = 1, count do
  local ticket = string.sub(tickets, 32 * index - 31, 32 * index)
  local lock, queue = KEYS[index], KEYS[count + index]
  local done, reply = pcall(enqueue_one, lock, queue, nil, ticket, inbox, id_of(index), lock_time_of(index), counts)
  replies[index] = done and reply or error_of(reply)
end
return of_all(replies)
`,
);
