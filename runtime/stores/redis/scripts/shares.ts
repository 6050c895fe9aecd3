import { MOST_DEAD_AT_ONCE } from "../../port";
import { SHARED_BY_READERS, sharedByPermits } from "../../value";
import { REVOKED } from "./values";

/** A mark packs two numbers into one score: the limit of permits times this, plus how many permits the hold has. */
export const PERMITS_UNIT = 1_024;

/**
 * Functions for the holds of a shared key. They need SERVER_TIME.
 *
 * The key itself says only that it is shared, by readers or with how many permits in all. It expires with the last hold. Another key, a sorted set,
 * contains the holds, each under the requestId of the command that acquired it:
 *
 *   <requestId>    its deadline in ms on the server's clock. The hold still counts in that millisecond
 *   =<requestId>   with permits: minus (the caller's limit of permits * PERMITS_UNIT + how many permits the hold has)
 *
 * Each call takes O(log n) time, and removes at most MOST_DEAD_AT_ONCE expired holds. The others count as held until a later call
 * removes them. So a call may refuse a caller that has room, and never admits one too many.
 */
export const SHARES = `
${REVOKED}
local READERS = "${SHARED_BY_READERS}"

local function now_ms()
  return math.floor(now_us() / 1000)
end

-- Returns how many permits are held: 0 for readers, and nil if the key is free or not shared.
local function permits_in(value)
  if value == READERS then
    return 0
  end
  return type(value) == "string" and tonumber(string.match(value, "^${sharedByPermits()}(%d+)$")) or nil
end

-- Returns how many permits a hold has, from its mark.
local function permits_of(mark)
  return -mark % ${PERMITS_UNIT}
end

-- Removes a hold. Returns how many permits the other holds have.
local function remove_hold(holds, id, taken)
  local mark = taken > 0 and redis.call("ZSCORE", holds, "=" .. id)
  redis.call("ZREM", holds, id, "=" .. id)
  return mark and math.max(taken - permits_of(mark), 0) or taken
end

-- Writes how many permits are held. PEXPIRE comes first: after its first write, a script may continue even if no memory is left.
local function write_shares(lock, holds, value, taken)
  local last = redis.call("ZREVRANGE", holds, 0, 0, "WITHSCORES")[2]
  local ms = string.format("%.0f", math.max(last - now_ms(), 1))
  redis.call("PEXPIRE", holds, ms)
  redis.call("SET", lock, value == READERS and READERS or "${sharedByPermits()}" .. taken, "PX", ms)
end

-- The number of expired holds that this call may still remove.
local overdue = ${MOST_DEAD_AT_ONCE}

-- Removes expired holds. Returns the value of the key, or an error if it is not a string, and how many permits are held.
local function shares_in(lock, holds)
  local value = redis.pcall("GET", lock)
  local taken = permits_in(value)
  if not taken or overdue == 0 then
    return value, taken
  end
  local before_now = string.format("(%.0f", now_ms())
  local over = redis.call("ZRANGEBYSCORE", holds, 1, before_now, "LIMIT", 0, overdue)
  overdue = overdue - #over
  for _, id in ipairs(over) do
    taken = remove_hold(holds, id, taken)
  end
  if #over > 0 and redis.call("EXISTS", holds) == 1 then
    write_shares(lock, holds, value, taken)
  end
  return value, taken
end

-- Returns the deadline of a hold, or nil if there is no such hold.
local function ends_of(holds, id)
  local ends = tonumber(redis.call("ZSCORE", holds, id) or nil)
  return ends and ends >= now_ms() and ends or nil
end

-- Returns the ID under which the hold is stored, or nil if there is no such hold. The ID changes when the hold is revoked.
local function own_in(holds, id)
  if ends_of(holds, id) then
    return id
  end
  return ends_of(holds, revoked_from(id)) and revoked_from(id) or nil
end

-- Returns the smallest and the largest limit among the holders.
local function limits_in(holds)
  local smallest = redis.call("ZREVRANGEBYSCORE", holds, -1, "-inf", "WITHSCORES", "LIMIT", 0, 1)[2]
  local largest = redis.call("ZRANGEBYSCORE", holds, "-inf", -1, "WITHSCORES", "LIMIT", 0, 1)[2]
  local function limit(mark)
    return mark and math.floor(-mark / ${PERMITS_UNIT})
  end
  return limit(smallest), limit(largest)
end

-- Returns how many permits are left for a caller with this limit. A reader has the limit 0, and gets 1 or 0.
local function room_in(holds, value, taken, limit)
  if limit == 0 or value == READERS then
    return limit == 0 and value == READERS and 1 or 0
  end
  return math.min(limit, limits_in(holds) or limit) - taken
end

-- Adds a hold to a key that is free or has room. Returns how many permits it got, and the limit of another holder if it differs.
local function join_shares(lock, holds, value, taken, id, lock_time, limit, wanted)
  local differs = 0
  if not value then
    taken = 0
    if redis.call("EXISTS", holds) == 1 then
      redis.call("UNLINK", holds)
    end
  end
  local ends = string.format("%.0f", now_ms() + lock_time)
  if limit == 0 then
    redis.call("ZADD", holds, ends, id)
    write_shares(lock, holds, READERS)
    return 1, differs
  end
  local got = math.min(wanted, limit)
  if value then
    got = math.min(got, room_in(holds, value, taken, limit))
    local smallest, largest = limits_in(holds)
    differs = smallest and (smallest ~= limit and smallest or largest ~= limit and largest) or 0
  end
  redis.call("ZADD", holds, ends, id, string.format("-%.0f", limit * ${PERMITS_UNIT} + got), "=" .. id)
  write_shares(lock, holds, nil, taken + got)
  return got, differs
end

-- Returns when to ask again, in ms. A reader waits until the last hold ends, and a caller with permits until the first one does.
local function room_comes_in(lock, holds, value, limit)
  if limit == 0 or value == READERS then
    return redis.call("PTTL", lock)
  end
  local ends = redis.call("ZRANGEBYSCORE", holds, 1, "+inf", "WITHSCORES", "LIMIT", 0, 1)[2]
  return ends and ends - now_ms() or redis.call("PTTL", lock)
end
`;
