import { reservedFor } from "../../value";
import { QUEUE } from "./queue";
import { script } from "./script";
import { SERVER_TIME } from "./server-time";
import { SHARES } from "./shares";
import { ERROR_OF, MANY, OF_ALL } from "./values";

// Scripts for shared locks. Their KEYS: all locks, then their queues, then their holds. Their ARGV: all requestIds in one string, then the
// arguments of each lock in turn.

const EACH = `
local count = #KEYS / 3
local function each(of_each, work)
  local replies = {}
  for index = 1, count do
    local args = { unpack(ARGV, of_each * (index - 1) + 2, of_each * index + 1) }
    local lock, queue, holds = KEYS[index], KEYS[count + index], KEYS[2 * count + index]
    local done, reply = pcall(work, lock, queue, holds, id_of(index), unpack(args))
    replies[index] = done and reply or error_of(reply)
  end
  return of_all(replies)
end
`;

/** Whether a waiter exists that a caller with this limit must not pass. A reader has the limit 0. */
const SOMEBODY_WAITS = `
local function somebody_waits(queue, limit)
  if limit == 0 and only_readers_wait(queue) then
    return 0
  end
  return (first_after(queue, 0) or dead_are_left) and 1 or 0
end
`;

/**
 * Acquires each key that is free. Also acquires each key that is shared and has room, if nobody is waiting. Readers may pass waiting
 * readers.
 *
 * ARGV of each: lock time in ms; the caller's limit of permits, 0 for a reader; how many permits it wants at most.
 *
 * Reply for each, if acquired: { 1, how many permits it got, the limit of another holder or 0 if it is the same, 1 if
 * anybody is waiting, 0 }. Otherwise { 0, the value of the key }, or an error.
 */
export const SHARE_MANY = script(
  MANY,
  ERROR_OF,
  OF_ALL,
  SERVER_TIME,
  SHARES,
  QUEUE,
  SOMEBODY_WAITS,
  EACH,
  `
return each(3, function(lock, queue, holds, id, lock_time, limit, wanted)
  limit, wanted = tonumber(limit), tonumber(wanted)
  local value, taken = shares_in(lock, holds)
  local own = taken and own_in(holds, id)
  if own or (value and not taken) then
    return { 0, own or value }
  end
  if value and (somebody_waits(queue, limit) == 1 or room_in(holds, value, taken, limit) < 1) then
    return { 0, value }
  end
  local got, differs = join_shares(lock, holds, value, taken, id, lock_time, limit, wanted)
  return { 1, got, differs, somebody_waits(queue, limit), 0 }
end)
`,
);

/**
 * Acquires each key if it is the turn of the ticket. Otherwise enqueues the ticket or keeps its turn. If room is left, notifies the next
 * waiter.
 *
 * ARGV of each: lock time in ms; the caller's limit of permits, 0 for a reader; how many permits it wants at most; ticket; inbox; "1" if
 * PUBLISH counts all subscribers; the earlier inbox of the ticket, or "-" if it is the same.
 *
 * Reply for each, if acquired: as above, with 1 at the end if a PUBLISH was denied. Otherwise { 0, the value of the key, when
 * to ask again in ms or -1 if another waiter is first, 1 if a PUBLISH was denied, 1 if the ticket is the last }, or an error.
 */
export const ENQUEUE_TO_SHARE_MANY = script(
  MANY,
  ERROR_OF,
  OF_ALL,
  SERVER_TIME,
  SHARES,
  QUEUE,
  SOMEBODY_WAITS,
  EACH,
  `
return each(7, function(lock, queue, holds, id, lock_time, limit, wanted, ticket, inbox, counts, before)
  limit, wanted = tonumber(limit), tonumber(wanted)
  local waiter = ticket .. " " .. inbox
  local value, taken = shares_in(lock, holds)
  local function acquire()
    forget(queue, waiter)
    local got, differs = join_shares(lock, holds, value, taken, id, lock_time, limit, wanted)
    local now_held, now_taken = shares_in(lock, holds)
    if room_in(holds, now_held, now_taken, limit) > 0 then
      choose(queue, counts)
    end
    return { 1, got, differs, somebody_waits(queue, limit), publish_is_denied }
  end
  local own = taken and own_in(holds, id)
  if own then
    return { 0, own, -1, 0, 0 }
  end
  if value == "${reservedFor("")}" .. ticket then
    value = nil
    return acquire()
  end
  keep_ticket(queue, waiter, before ~= "-" and ticket .. " " .. before, limit == 0)
  if not value or (taken and room_in(holds, value, taken, limit) > 0) then
    local may_pass = limit == 0 and value == READERS and only_readers_wait(queue)
    local chosen = may_pass and waiter or choose(queue, counts, waiter)
    if chosen == waiter then
      return acquire()
    end
    value = value or chosen and reserve(lock, queue, chosen) or false
  end
  local is_last = redis.call("ZREVRANGE", queue, 0, 0)[1] == waiter and 1 or 0
  if first_after(queue, 0) ~= waiter then
    return { 0, value, ask_again_in(), publish_is_denied, is_last }
  end
  local left = taken and room_comes_in(lock, holds, value, limit) or redis.call("PTTL", lock)
  return { 0, value, left, publish_is_denied, is_last }
end)
`,
);

/**
 * Releases shared holds. If other holds are left, notifies the first waiter. Otherwise reserves the key for that waiter, or frees it.
 *
 * ARGV of each: "1" if PUBLISH counts all subscribers.
 *
 * Reply for each, if released: 1, or 2 if a PUBLISH was denied. Otherwise { the value of the key }, or an error.
 */
export const RELEASE_SHARES = script(
  MANY,
  ERROR_OF,
  OF_ALL,
  SERVER_TIME,
  SHARES,
  QUEUE,
  EACH,
  `
return each(1, function(lock, queue, holds, id, counts)
  local value, taken = shares_in(lock, holds)
  local own = taken and own_in(holds, id)
  if not own then
    return { value }
  end
  taken = remove_hold(holds, own, taken)
  if redis.call("EXISTS", holds) == 0 then
    pass_on(lock, queue, counts)
  else
    write_shares(lock, holds, value, taken)
    pcall(choose, queue, counts)
  end
  return 1 + publish_is_denied
end)
`,
);

/**
 * Renews shared holds, and never shortens one. A hold keeps at most the requested number of its permits, and releases the others.
 *
 * ARGV of each: lock time in ms; how many permits it keeps, 0 for all; "1" if PUBLISH counts all subscribers.
 *
 * Reply for each, if renewed: 1, or 2 if anybody is waiting. Otherwise { the value of the key }, or an error.
 */
export const RENEW_SHARES = script(
  MANY,
  ERROR_OF,
  OF_ALL,
  SERVER_TIME,
  SHARES,
  QUEUE,
  SOMEBODY_WAITS,
  EACH,
  `
return each(3, function(lock, queue, holds, id, lock_time, kept, counts)
  local value, taken = shares_in(lock, holds)
  local ends = taken and ends_of(holds, id)
  if not ends then
    return { taken and own_in(holds, id) or value }
  end
  redis.call("ZREM", holds, "") -- Removes nothing. After its first write, a script may continue even if no memory is left.
  redis.call("ZADD", holds, string.format("%.0f", math.max(ends, now_ms() + lock_time)), id)
  local mark = tonumber(kept) > 0 and redis.call("ZSCORE", holds, "=" .. id)
  local gives_back = mark and math.max(permits_of(mark) - kept, 0) or 0
  if gives_back > 0 then
    redis.call("ZADD", holds, string.format("%.0f", mark + gives_back), "=" .. id)
  end
  write_shares(lock, holds, value, taken - gives_back)
  if gives_back > 0 then
    pcall(choose, queue, counts)
  end
  return 1 + somebody_waits(queue, value == READERS and 0 or nil)
end)
`,
);

/**
 * Revokes one hold of a shared key. The hold keeps its permits and its deadline.
 *
 * KEYS: lock, its queue, its holds. ARGV: requestId.
 *
 * Reply: 1 if it is revoked, otherwise { the value of the key }.
 */
export const REVOKE_SHARE = script(
  SERVER_TIME,
  SHARES,
  `
local value, taken = shares_in(KEYS[1], KEYS[3])
local own = taken and own_in(KEYS[3], ARGV[1])
if own ~= ARGV[1] then
  return own and 1 or { value }
end
redis.call("ZREM", KEYS[3], "") -- Removes nothing. After its first write, a script may continue even if no memory is left.
for _, mark in ipairs({ "", "=" }) do
  local score = redis.call("ZSCORE", KEYS[3], mark .. own)
  if score then
    -- ZADD comes first: a set that loses its last member also loses its time to live.
    redis.call("ZADD", KEYS[3], score, mark .. revoked_from(own))
    redis.call("ZREM", KEYS[3], mark .. own)
  end
end
return 1
`,
);

/**
 * Lists the holds of a shared key, at most 1,000 of them.
 *
 * KEYS: its holds.
 *
 * Reply: { the server's time in ms, the holds with their deadlines, the marks with their numbers }.
 */
export const INSPECT_SHARES = script(
  SERVER_TIME,
  `
local now = string.format("%.0f", math.floor(now_us() / 1000))
return {
  now,
  redis.call("ZRANGEBYSCORE", KEYS[1], now, "+inf", "WITHSCORES", "LIMIT", 0, 1000),
  redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", -1, "WITHSCORES", "LIMIT", 0, 1000),
}
`,
);
