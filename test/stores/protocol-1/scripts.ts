// The scripts of protocol 1, as version 0.1 sent them. They test that both versions work together during an upgrade.

const FENCING_STRIDE = 64;
const PLACE_TIME_MS = 3_000;
const CLAIM_TIME_MS = 1_500;

/** The text of a script. */
type Script = string;

// With pcall, the reply is an error (a table) if a key holds other data than text. Such a key is not a lock of Lockweave.

// The keys of one lock. `lock` holds the requestId of the holder, and its time to live is the lock time.
// `queue` is a sorted set with two entries for each waiter: one by the time when it came, and one, with a `-` before its
// name, by minus the time when it loses its position. Its name is "<requestId> <inbox>", and the inbox is the channel of
// its process. `fence` holds the last fencing token.
const COMMON = `
local now
local function now_us()
  if not now then
    local time = redis.call("TIME")
    now = time[1] * 1000000 + time[2]
  end
  return now
end

local function forget(queue, waiter)
  redis.call("ZREM", queue, waiter, "-" .. waiter)
end

local function keep_place(queue, waiter)
  local ends = now_us() + ${PLACE_TIME_MS * 1_000}
  redis.call("ZADD", queue, "NX", string.format("%.0f", now_us()), waiter)
  redis.call("ZADD", queue, string.format("%.0f", -ends), "-" .. waiter)
  redis.call("PEXPIRE", queue, ${2 * PLACE_TIME_MS})
end

local function first_in(queue)
  while true do
    local first = redis.call("ZRANGEBYSCORE", queue, 0, "+inf", "LIMIT", 0, 1)[1]
    if not first then
      return nil
    end
    local ends = redis.call("ZSCORE", queue, "-" .. first)
    if ends and -ends > now_us() then
      return first
    end
    forget(queue, first)
  end
end

local function offer(lock, queue, waiter)
  forget(queue, waiter)
  redis.call("SET", lock, string.sub(waiter, 1, 32), "PX", ${CLAIM_TIME_MS})
  redis.pcall("PUBLISH", string.sub(waiter, 34), string.sub(waiter, 1, 32))
end

local function offer_to_first(lock, queue)
  local first = first_in(queue)
  if first then
    offer(lock, queue, first)
  end
  return first
end

-- Where the queue is no queue, or no memory is left to write with, the lock is freed all the same.
local function pass_on(lock, queue)
  local done, first = pcall(offer_to_first, lock, queue)
  if not (done and first) then
    redis.call("DEL", lock)
  end
end

local function draw_token(fence, lock_time)
  local last = tonumber(redis.call("GET", fence) or 0)
  local token = math.max(now_us(), last + 1)
  redis.call("SET", fence, string.format("%.0f", token + ${FENCING_STRIDE - 1}), "PX", lock_time + 3600000)
  return string.format("%.0f", token)
end
`;

/** KEYS: lock, fence. ARGV: requestId, lock time in ms, "1" for a fencing token. */
export const ACQUIRE = script(`
local holder = redis.call("GET", KEYS[1])
if holder and holder ~= ARGV[1] then
  return { "held" }
end
local token
if ARGV[3] == "1" then
  local last = holder and redis.call("GET", KEYS[2])
  token = last and string.format("%.0f", last - ${FENCING_STRIDE - 1}) or draw_token(KEYS[2], ARGV[2])
end
if not holder then
  redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
end
return { holder and "again" or "fresh", token }
`);

// The scripts for many keys get all requestIds in one argument, since fewer arguments cost less.
const MANY = `
local function id_of(index)
  return string.sub(ARGV[1], 32 * index - 31, 32 * index)
end

local function lock_time_of(index)
  return ARGV[index + 1] or ARGV[2]
end
`;

/** KEYS: lock, queue, and for a fencing token fence. ARGV: requestId, inbox, lock time in ms. */
export const WAIT = script(`
local waiter = ARGV[1] .. " " .. ARGV[2]
local function grant()
  local token = KEYS[3] and draw_token(KEYS[3], ARGV[3])
  forget(KEYS[2], waiter)
  redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[3])
  return { "granted", token }
end
local holder = redis.call("GET", KEYS[1])
if holder == ARGV[1] then
  return grant()
end
keep_place(KEYS[2], waiter)
local first = first_in(KEYS[2])
if not holder then
  if first == waiter then
    return grant()
  end
  offer(KEYS[1], KEYS[2], first)
  first = first_in(KEYS[2])
end
return { "held", first == waiter and redis.call("PTTL", KEYS[1]) or -1 }
`);

/** KEYS: lock, queue. ARGV: requestId, inbox. */
export const LEAVE = script(`
forget(KEYS[2], ARGV[1] .. " " .. ARGV[2])
if redis.call("GET", KEYS[1]) == ARGV[1] then
  pass_on(KEYS[1], KEYS[2])
end
`);

// The reply if the key is held by another. A key that holds other data than text counts as held.
const NOT_OURS = `
local function whose(lock)
  return redis.call("EXISTS", lock) == 1 and "stolen" or "expired"
end
`;

/** KEYS: the locks. ARGV: their requestIds; the lock times in ms, or one for all. */
export const RENEW_MANY = scriptOf(`${MANY}${NOT_OURS}
local replies = {}
local holders = redis.call("MGET", unpack(KEYS))
for index, lock in ipairs(KEYS) do
  if holders[index] == id_of(index) then
    redis.call("PEXPIRE", lock, lock_time_of(index))
    replies[index] = "renewed"
  else
    replies[index] = whose(lock)
  end
end
return replies
`);

/** KEYS: the locks, then the queue of each. ARGV: their requestIds. */
export const RELEASE_MANY = script(`${MANY}${NOT_OURS}
local count = #KEYS / 2
local replies, ours = {}, {}
local holders = redis.call("MGET", unpack(KEYS, 1, count))
local nobody_waits = redis.call("EXISTS", unpack(KEYS, count + 1)) == 0
for index = 1, count do
  local lock = KEYS[index]
  if holders[index] ~= id_of(index) then
    replies[index] = whose(lock)
  else
    if nobody_waits then
      ours[#ours + 1] = lock
    else
      pass_on(lock, KEYS[count + index])
    end
    replies[index] = "released"
  end
end
if #ours > 0 then
  redis.call("DEL", unpack(ours))
end
return replies
`);

/** KEYS: lock, queue. ARGV: requestId. Without waiters, it does no work for them. */
export const RELEASE_ONE = scriptOf(`
local holder = redis.pcall("GET", KEYS[1])
if holder ~= ARGV[1] then
  return holder and "stolen" or "expired"
end
if redis.call("EXISTS", KEYS[2]) == 0 then
  redis.call("DEL", KEYS[1])
  return "released"
end
${COMMON}
pass_on(KEYS[1], KEYS[2])
return "released"
`);

/** KEYS: lock, queue, and for a fencing token fence. ARGV: requestId, next requestId, inbox, lock time. */
export const HAND_ON = script(`
local holder = redis.call("GET", KEYS[1])
if holder ~= ARGV[1] then
  return { holder and "stolen" or "expired" }
end
local function hand_on()
  local waiter = ARGV[2] .. " " .. ARGV[3]
  if redis.call("ZCARD", KEYS[2]) > 0 then
    keep_place(KEYS[2], waiter)
    local first = first_in(KEYS[2])
    if first ~= waiter then
      offer(KEYS[1], KEYS[2], first)
      return { "queued" }
    end
    forget(KEYS[2], waiter)
  end
  local token = KEYS[3] and draw_token(KEYS[3], ARGV[4])
  redis.call("SET", KEYS[1], ARGV[2], "PX", ARGV[4])
  return { "handed on", token }
end
local done, reply = pcall(hand_on)
if done then
  return reply
end
redis.call("DEL", KEYS[1])
return { "released" }
`);

function script(body: string): Script {
  return scriptOf(COMMON + body);
}

function scriptOf(source: string): Script {
  return source;
}
