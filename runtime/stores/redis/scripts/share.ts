import { reservedFor } from "../../value";
import { QUEUE } from "./queue";
import { script } from "./script";
import { SERVER_TIME } from "./server-time";
import { SHARES } from "./shares";
import { ERROR_OF, MANY, OF_ALL } from "./values";

// How the scripts of this file read their arguments: KEYS has the locks, then the queue of each, then the holds of each.
// ARGV begins with all requestIds in one; then there are those of each lock, one after the other.

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

const SOMEBODY_WAITS = `
local function somebody_waits(queue)
  return (first_after(queue, 0) or dead_are_left) and 1 or 0
end
`;

/**
 * Takes those of many keys that are free, or may be shared, while nobody waits.
 *
 * ARGV of each: lock time in ms; how many permits there are in its eyes, 0 of a reader; how many it wants at most.
 *
 * Reply, for each: { 1, how many permits it has got, the limit of another where that differs and 0 elsewhere, 1 where
 * somebody waits, 0 } where it was taken, otherwise { 0, what it holds }; or its error.
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
  if value and (somebody_waits(queue) == 1 or room_in(holds, value, taken, limit) < 1) then
    return { 0, value }
  end
  local got, differs = join_shares(lock, holds, value, taken, id, lock_time, limit, wanted)
  return { 1, got, differs, somebody_waits(queue), 0 }
end)
`,
);

/**
 * Takes those of many keys whose turn it is to be shared, or keeps the places of those who wait. Where more may hold one, the
 * next is told.
 *
 * ARGV of each: lock time in ms, limit, how many permits it wants at most, place, inbox, "1" where PUBLISH counts all
 * who listen, the inbox that the place had where that was another one and "-" elsewhere.
 *
 * Reply, for each: as above, with 1 at the end where a PUBLISH was denied. Otherwise { 0, what it holds, in how many ms there
 * is room where the place is the first or 1 where dead waiters are left before it and -1 elsewhere, 1 where a PUBLISH was
 * denied, 1 where nobody stands behind the place }; or its error.
 */
export const PLACE_TO_SHARE_MANY = script(
  MANY,
  ERROR_OF,
  OF_ALL,
  SERVER_TIME,
  SHARES,
  QUEUE,
  SOMEBODY_WAITS,
  EACH,
  `
return each(7, function(lock, queue, holds, id, lock_time, limit, wanted, place, inbox, counts, before)
  limit, wanted = tonumber(limit), tonumber(wanted)
  local waiter = place .. " " .. inbox
  local value, taken = shares_in(lock, holds)
  local function take()
    forget(queue, waiter)
    local got, differs = join_shares(lock, holds, value, taken, id, lock_time, limit, wanted)
    local now_held, now_taken = shares_in(lock, holds)
    if room_in(holds, now_held, now_taken, limit) > 0 then
      choose(queue, counts)
    end
    return { 1, got, differs, somebody_waits(queue), publish_is_denied }
  end
  local own = taken and own_in(holds, id)
  if own then
    return { 0, own, -1, 0, 0 }
  end
  if value == "${reservedFor("")}" .. place then
    value = nil
    return take()
  end
  keep_place(queue, waiter, before ~= "-" and place .. " " .. before)
  if not value or (taken and room_in(holds, value, taken, limit) > 0) then
    local chosen = choose(queue, counts, waiter)
    if chosen == waiter then
      return take()
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
 * Ends many holds of those who share keys: what is left is for the others, or the key is passed on.
 *
 * ARGV of each: "1" where PUBLISH counts all who listen.
 *
 * Reply, for each: 1 where it was dropped, 2 where besides a PUBLISH was denied, otherwise { what it holds }; or its error.
 */
export const DROP_SHARES = script(
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
 * Gives each hold its lock time again, and never less than it has left; and of its permits leaves it so many at most. It says who
 * waits, too.
 *
 * ARGV of each: lock time in ms, how many permits it keeps (0 for a reader), "1" where PUBLISH counts all who listen.
 *
 * Reply, for each: 1 where it was renewed, 2 where besides somebody waits, otherwise { what it holds }; or its error.
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
  redis.call("ZREM", holds, "") -- Removes nothing. Who has written may go on where no memory is left.
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
  return 1 + somebody_waits(queue)
end)
`,
);

/**
 * Ends a hold among others for who has it; for everybody else the key stays as it is.
 *
 * KEYS: lock, its queue, its holds. ARGV: requestId.
 *
 * Reply: 1 where it is revoked, otherwise { what it holds }.
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
for _, mark in ipairs({ "", "=" }) do
  local score = redis.call("ZSCORE", KEYS[3], mark .. own)
  if score then
    redis.call("ZREM", KEYS[3], mark .. own)
    redis.call("ZADD", KEYS[3], score, mark .. revoked_from(own))
  end
end
return 1
`,
);

/**
 * The holds of a key that is shared, for people, as far as 1,000.
 *
 * KEYS: its holds.
 *
 * Reply: { the server's time in ms, each hold with until when it lasts, each mark of a hold
 * with its number }.
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
