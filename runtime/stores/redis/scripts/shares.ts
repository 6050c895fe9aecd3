import { sharedBy } from "../../value";
import { REVOKED } from "./values";

/**
 * Those who hold a key together, in its value; needs the server's time. Each entry ends by itself on the server's clock,
 * and the key with the last of them.
 */
export const SHARES = `
${REVOKED}
local function now_ms()
  return math.floor(now_us() / 1000)
end

-- Each as { id, until when, permits }, without those whose time is over; nil where the key is held otherwise.
local function shares_in(value)
  if type(value) ~= "string" or string.sub(value, 1, ${sharedBy([]).length}) ~= "${sharedBy([])}" then
    return nil
  end
  local shares, read = {}, ${sharedBy([]).length}
  for entry in string.gmatch(string.sub(value, read + 1), "[^ ]+") do
    local id, ends, permits = string.match(entry, "^([^@]+)@(%d+)/(%d+)$")
    if not id or #id ~= 32 then
      return nil
    end
    read = read + #entry + 1
    if tonumber(ends) >= now_ms() then
      shares[#shares + 1] = { id, tonumber(ends), tonumber(permits) }
    end
  end
  -- One blank stands between two entries, and none elsewhere.
  return read == #value + 1 and shares or nil
end

-- Where several are asked for in one command, one of them may have changed it.
local function as_it_is(lock, value)
  return value and shares_in(value) and redis.call("GET", lock)
end

local function share_of(shares, id)
  for index, share in ipairs(shares or {}) do
    if share[1] == id then
      return index
    end
  end
  return nil
end

-- The same, revoked or not.
local function entry_of(shares, id)
  return share_of(shares, id) or share_of(shares, revoked_from(id))
end

-- How many may hold the key at once: who asks, and those who hold it.
local function most_of(permits, shares)
  local most = tonumber(permits)
  for _, share in ipairs(shares) do
    most = math.min(most, share[3])
  end
  return most
end

local function has_room(shares, permits)
  return #shares < most_of(permits, shares)
end

local function text_of(shares)
  local entries = {}
  for index, share in ipairs(shares) do
    entries[index] = string.format("%s@%.0f/%.0f", share[1], share[2], share[3])
  end
  return "${sharedBy([])}" .. table.concat(entries, " ")
end

local function write_shares(lock, shares)
  local ends = 0
  for _, share in ipairs(shares) do
    ends = math.max(ends, share[2])
  end
  redis.call("SET", lock, text_of(shares), "PX", string.format("%.0f", math.max(ends - now_ms(), 1)))
end

-- Of a key that is there. Who has written may go on where no memory is left: what is held is renewed and given back there, too.
local function write_on(lock, shares)
  redis.call("PEXPIRE", lock, redis.call("PTTL", lock))
  write_shares(lock, shares)
end

-- As the server counts for a key: in whole milliseconds, the last of them included.
local function ends_after(lock_time)
  return now_ms() + tonumber(lock_time)
end

-- Returns the permits of another, where those are more or fewer.
local function join_shares(lock, shares, id, lock_time, permits)
  local others
  for _, share in ipairs(shares) do
    if share[3] ~= tonumber(permits) then
      others = share[3]
    end
  end
  shares[#shares + 1] = { id, ends_after(lock_time), tonumber(permits) }
  write_shares(lock, shares)
  return others or false
end

-- Those who are left, if it was there.
local function leave_shares(lock, value, id)
  local shares = shares_in(value)
  local index = entry_of(shares, id)
  if not index then
    return nil
  end
  table.remove(shares, index)
  if #shares > 0 then
    write_on(lock, shares)
  end
  return shares
end
`;
