import { CLAIM_TIME_MS, MOST_DEAD_AT_ONCE, TICKET_TIME_MS } from "../../port";
import { reservedFor } from "../../value";
import { inboxName } from "../keys";

/**
 * Functions for the queue of a lock. They need SERVER_TIME.
 *
 * The queue is one sorted set with these entries for each waiter, which is written "<ticket> <inbox>":
 *
 *   <ticket> <inbox>     its turn: one more than that of the last waiter. The order does not depend on any clock
 *   -<ticket> <inbox>    minus its deadline, in microseconds on the server's clock. The waiter extends it when it asks again
 *   =<ticket> <inbox>    for readers only: -1
 *
 * The inbox is the channel on which the waiter's process is notified. It is empty if the process knows that it cannot subscribe.
 */
export const QUEUE = `
local publish_is_denied = 0

local function forget(queue, waiter)
  return redis.call("ZREM", queue, waiter, "-" .. waiter, "=" .. waiter)
end

-- Enqueues the waiter, or extends its deadline. before: the same ticket with its earlier inbox, if the inbox has changed.
-- It reads the clock first: a user that may not run TIME must not leave a queue without a time to live.
local function keep_ticket(queue, waiter, before, is_reader)
  local deadline = now_us() + ${TICKET_TIME_MS * 1_000}
  local turn = before and redis.call("ZSCORE", queue, before)
  if turn then
    forget(queue, before)
    redis.call("ZADD", queue, turn, waiter)
  elseif not redis.call("ZSCORE", queue, waiter) then
    local last = redis.call("ZREVRANGE", queue, 0, 0, "WITHSCORES")[2] or 0
    redis.call("ZADD", queue, math.max(last, 0) + 1, waiter)
  end
  redis.call("ZADD", queue, string.format("%.0f", -deadline), "-" .. waiter)
  if is_reader then
    redis.call("ZADD", queue, -1, "=" .. waiter)
  end
  redis.call("PEXPIRE", queue, ${2 * TICKET_TIME_MS})
end

-- Whether only readers wait. All readers may hold the key together, so a reader may pass them.
local function only_readers_wait(queue)
  return redis.call("ZCOUNT", queue, -1, -1) == redis.call("ZCOUNT", queue, "(0", "+inf")
end

-- Whether the entry has the form that Lockweave writes. Without this check, other writers of the queue could choose where we publish.
local function is_ours(waiter)
  local inbox = string.sub(waiter, 34)
  return string.sub(waiter, 33, 33) == " "
    and not string.find(string.sub(waiter, 1, 32), "%X")
    and (inbox == "" or string.sub(inbox, 1, ${inboxName("").length}) == "${inboxName("")}")
end

-- The number of dead waiters that this call may still remove, and of waiters that it may still notify without success. A queue can have any length,
-- so both are limited.
local removals, notices = ${MOST_DEAD_AT_ONCE}, ${MOST_DEAD_AT_ONCE}
-- Whether more dead waiters are in front than this call may remove. Then the waiters behind them ask again soon.
local dead_are_left = false

-- Removes a dead waiter. If even the waiter with the latest deadline is dead, all are, so it removes the whole queue.
local function forget_dead(queue, waiter)
  local latest = redis.call("ZRANGEBYSCORE", queue, "-inf", "+inf", "WITHSCORES", "LIMIT", 0, 1)[2]
  if latest and tonumber(latest) < 0 and -latest <= now_us() then
    redis.call("UNLINK", queue)
  else
    forget(queue, waiter)
  end
end

-- Returns the first live waiter behind that turn, with its own turn. Removes dead waiters and entries of other programs in front of it.
local function first_after(queue, turn)
  dead_are_left = false
  while true do
    local first = redis.call("ZRANGEBYSCORE", queue, "(" .. turn, "+inf", "WITHSCORES", "LIMIT", 0, 1)
    if not first[1] then
      return nil
    end
    local ends = redis.call("ZSCORE", queue, "-" .. first[1])
    if ends and -ends > now_us() and is_ours(first[1]) then
      return first[1], first[2]
    end
    if removals == 0 then
      dead_are_left = true
      return nil
    end
    removals = removals - 1
    forget_dead(queue, first[1])
  end
end

-- When to ask again, in ms, if dead waiters are left in front; otherwise -1.
local function ask_again_in()
  return dead_are_left and 1 or -1
end

-- Sends a wake-up. Returns whether the waiter may have received it. A waiter without an inbox counts as notified, because it asks by
-- itself.
-- counts: "1" if PUBLISH counts all subscribers. In a cluster, it counts those of one node only. An inbox with a hash tag is served by the
-- node that has its slot. That is this node unless the slot has moved.
local function hears(waiter, counts)
  local inbox = string.sub(waiter, 34)
  if inbox == "" then
    return true
  end
  local has_slot = string.find(inbox, "{", 1, true)
  local heard = redis.pcall(has_slot and "SPUBLISH" or "PUBLISH", inbox, string.sub(waiter, 1, 32))
  if type(heard) == "number" then
    return heard > 0 or not (has_slot or counts == "1")
  end
  if has_slot and string.find(heard.err, "non local", 1, true) then
    return false
  end
  publish_is_denied = 1
  return true
end

-- Returns the waiter that gets the key: the first one that receives the wake-up, or the caller if it comes before that one. A killed process
-- receives none, and a reservation for it would block the key for the claim time. A waiter that is only reconnecting keeps its turn. If no
-- waiter that was notified receives the wake-up, the first of all is chosen.
local function choose(queue, counts, caller)
  local first
  local waiter, turn = first_after(queue, 0)
  while waiter do
    if waiter == caller then
      return waiter
    end
    if notices == 0 then
      return first or waiter
    end
    if hears(waiter, counts) then
      return waiter
    end
    notices = notices - 1
    first = first or waiter
    waiter, turn = first_after(queue, turn)
  end
  return first
end

local function reserve(lock, queue, waiter)
  local value = "${reservedFor("")}" .. string.sub(waiter, 1, 32)
  forget(queue, waiter)
  redis.call("SET", lock, value, "PX", ${CLAIM_TIME_MS})
  return value
end

local function reserve_for_next(lock, queue, counts)
  local chosen = choose(queue, counts)
  if chosen then
    reserve(lock, queue, chosen)
  end
  return chosen
end

-- Reserves the key for the next waiter. Frees the key if there is none, if the queue is not a sorted set, or if the server has no memory
-- left to write a reservation.
local function pass_on(lock, queue, counts)
  local done, chosen = pcall(reserve_for_next, lock, queue, counts)
  if not (done and chosen) then
    redis.call("DEL", lock)
  end
end
`;
