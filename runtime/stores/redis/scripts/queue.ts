import { CLAIM_TIME_MS, MOST_DEAD_AT_ONCE, TICKET_TIME_MS } from "../../port";
import { reservedFor } from "../../value";
import { inboxName } from "../keys";

/**
 * Who comes next; needs the server's time.
 *
 * A lock's queue is one sorted set with these entries for each waiter, which is written "<place> <inbox>":
 *
 *   <place> <inbox>     its turn: one more than that of the last waiter. The order does not depend on any clock
 *   -<place> <inbox>    minus the server's time at which it loses its place unless its process asks again
 *   =<place> <inbox>    of readers only: -1
 *
 * The inbox is the channel on which its process is notified. It is empty if the process knows that it cannot hear.
 */
export const QUEUE = `
local publish_is_denied = 0

local function forget(queue, waiter)
  return redis.call("ZREM", queue, waiter, "-" .. waiter, "=" .. waiter)
end

-- before: the same place with an earlier inbox, if that was another one
local function keep_place(queue, waiter, before, is_reader)
  local turn = before and redis.call("ZSCORE", queue, before)
  if turn then
    forget(queue, before)
    redis.call("ZADD", queue, turn, waiter)
  elseif not redis.call("ZSCORE", queue, waiter) then
    local last = redis.call("ZREVRANGE", queue, 0, 0, "WITHSCORES")[2] or 0
    redis.call("ZADD", queue, math.max(last, 0) + 1, waiter)
  end
  redis.call("ZADD", queue, string.format("%.0f", -now_us() - ${TICKET_TIME_MS * 1_000}), "-" .. waiter)
  if is_reader then
    redis.call("ZADD", queue, -1, "=" .. waiter)
  end
  redis.call("PEXPIRE", queue, ${2 * TICKET_TIME_MS})
end

-- Whether nobody but readers waits. They may all hold the key together, so a reader may pass them.
local function only_readers_wait(queue)
  return redis.call("ZCOUNT", queue, -1, -1) == redis.call("ZCOUNT", queue, "(0", "+inf")
end

-- Whether a process of ours wrote it. Anybody else who may write to the queue could make us publish on a channel of theirs.
local function is_ours(waiter)
  local inbox = string.sub(waiter, 34)
  return string.sub(waiter, 33, 33) == " "
    and not string.find(string.sub(waiter, 1, 32), "%X")
    and (inbox == "" or string.sub(inbox, 1, ${inboxName("").length}) == "${inboxName("")}")
end

-- How many dead waiters this call may still remove, and how many it may still notify. A queue may be of any length.
local removals, notices = ${MOST_DEAD_AT_ONCE}, ${MOST_DEAD_AT_ONCE}
-- Whether more dead waiters are in front than this call may remove. The waiters behind them ask again soon.
local dead_are_left = false

-- If even the waiter with the latest deadline is dead, all are.
local function forget_dead(queue, waiter)
  local latest = redis.call("ZRANGEBYSCORE", queue, "-inf", "+inf", "WITHSCORES", "LIMIT", 0, 1)[2]
  if latest and tonumber(latest) < 0 and -latest <= now_us() then
    redis.call("UNLINK", queue)
  else
    forget(queue, waiter)
  end
end

-- The first after that turn who was heard of in time, and its turn. Those who were not lose their places.
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

-- Whether it may have heard. counts: "1" where PUBLISH counts all who listen (in a cluster it counts one node's). An inbox
-- with a slot of its own is heard on the node that has that slot, which is this one unless it has gone elsewhere.
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

-- Who is to have the key: the first who hears so, or asks itself. Nobody hears who died: it would cost the claim time to
-- wait for each of those. Who only reconnects keeps its place; where nobody of the first ones hears, the first of all is chosen.
local function choose(queue, counts, asker)
  local first
  local waiter, turn = first_after(queue, 0)
  while waiter do
    if waiter == asker then
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

-- Nobody holds the lock any more. Where the queue is no queue, or no memory is left to write with, it is free all the same.
local function pass_on(lock, queue, counts)
  local done, chosen = pcall(reserve_for_next, lock, queue, counts)
  if not (done and chosen) then
    redis.call("DEL", lock)
  end
end
`;
