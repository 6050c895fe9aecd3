import { MOST_DEAD_AT_ONCE } from "../../port";
import { SHARED_BY_READERS, sharedByPermits } from "../../value";
import { REVOKED } from "./values";

/** The mark of a hold has two numbers in one score: this times the limit of permits, and how many permits it has. */
export const PERMITS_UNIT = 1_024;

/**
 * The holds of those who share a key; needs the server's time.
 *
 * The key itself says only that it is shared, by readers or for how many permits in all, and lives as long as the last hold.
 * The holds are in a sorted set beside it, each by the requestId of the command that took it:
 *
 *   <requestId>    until when it lasts, in ms on the server's clock, the last of them included
 *   =<requestId>   of a hold with permits: minus (its limit of permits * ${PERMITS_UNIT} + how many permits it has)
 *
 * No call costs more than O(log n), and each removes a few of the holds whose time is over. Those that are left count as
 * held until a later call: so there may be less room than said, and never more.
 */
export const SHARES = `
${REVOKED}
local READERS = "${SHARED_BY_READERS}"

local function now_ms()
  return math.floor(now_us() / 1000)
end

-- For how many permits the key is held; 0 for readers. nil where it is free, or held otherwise.
local function permits_in(value)
  if value == READERS then
    return 0
  end
  return type(value) == "string" and tonumber(string.match(value, "^${sharedByPermits()}(%d+)$")) or nil
end

-- How many permits a hold has, by its mark.
local function permits_of(mark)
  return -mark % ${PERMITS_UNIT}
end

-- Returns how many permits are held without it.
local function remove_hold(holds, id, taken)
  local mark = taken > 0 and redis.call("ZSCORE", holds, "=" .. id)
  redis.call("ZREM", holds, id, "=" .. id)
  return mark and math.max(taken - permits_of(mark), 0) or taken
end

-- Writes how many permits are held. Whoever has written may go on where no memory is left: so it sets an expiry first.
local function write_shares(lock, holds, value, taken)
  local last = redis.call("ZREVRANGE", holds, 0, 0, "WITHSCORES")[2]
  local ms = string.format("%.0f", math.max(last - now_ms(), 1))
  redis.call("PEXPIRE", holds, ms)
  redis.call("SET", lock, value == READERS and READERS or "${sharedByPermits()}" .. taken, "PX", ms)
end

local overdue = ${MOST_DEAD_AT_ONCE}

-- What the key holds, and for how many permits, once holds whose time is over are removed. Of other data than text, the error.
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

-- Until when it lasts; nil where it is not there.
local function ends_of(holds, id)
  local ends = tonumber(redis.call("ZSCORE", holds, id) or nil)
  return ends and ends >= now_ms() and ends or nil
end

-- The id, or what is left of it where it is revoked; nil where neither is there.
local function own_in(holds, id)
  if ends_of(holds, id) then
    return id
  end
  return ends_of(holds, revoked_from(id)) and revoked_from(id) or nil
end

-- The smallest and the largest limit of those who hold permits.
local function limits_in(holds)
  local smallest = redis.call("ZREVRANGEBYSCORE", holds, -1, "-inf", "WITHSCORES", "LIMIT", 0, 1)[2]
  local largest = redis.call("ZRANGEBYSCORE", holds, "-inf", -1, "WITHSCORES", "LIMIT", 0, 1)[2]
  local function limit(mark)
    return mark and math.floor(-mark / ${PERMITS_UNIT})
  end
  return limit(smallest), limit(largest)
end

-- How many more permits there are beside those that are held. limit: 0 of a reader, who holds the key beside readers alone.
local function room_in(holds, value, taken, limit)
  if limit == 0 or value == READERS then
    return limit == 0 and value == READERS and 1 or 0
  end
  return math.min(limit, limits_in(holds) or limit) - taken
end

-- Of a key that is free, or has room. Returns how many permits it has got, and the limit of another, where that differs.
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

-- In how many ms to ask again: one that would be alone, or reads, waits for the last hold, any other for the first.
local function room_comes_in(lock, holds, value, limit)
  if limit == 0 or value == READERS then
    return redis.call("PTTL", lock)
  end
  local ends = redis.call("ZRANGEBYSCORE", holds, 1, "+inf", "WITHSCORES", "LIMIT", 0, 1)[2]
  return ends and ends - now_ms() or redis.call("PTTL", lock)
end
`;
