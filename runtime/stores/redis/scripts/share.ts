import { reservedFor } from "../../value";
import { QUEUE } from "./queue";
import { script } from "./script";
import { SERVER_TIME } from "./server-time";
import { SHARES } from "./shares";

/**
 * Takes a key that is free, or that fewer share than may, while nobody waits.
 *
 * KEYS: lock, and its queue where there can be one. ARGV: requestId, lock time in ms, permits.
 *
 * Reply: { 1, the permits of another where they are not the same } where it was taken, otherwise { 0, what it holds }.
 */
export const SHARE = script(
  SERVER_TIME,
  SHARES,
  QUEUE,
  `
local value = redis.call("GET", KEYS[1])
local shares = {}
if value then
  shares = shares_in(value)
  local may_join = shares and not entry_of(shares, ARGV[1]) and has_room(shares, ARGV[3])
  if not may_join or (KEYS[2] and first_after(KEYS[2], 0)) then
    return { 0, value }
  end
end
return { 1, join_shares(KEYS[1], shares, ARGV[1], ARGV[2], ARGV[3]) }
`,
);

/**
 * Takes the key whose turn it is to share it, or keeps the place of one who waits. Where more may hold it, the next is told.
 *
 * KEYS: lock, queue. ARGV: place, inbox, requestId, lock time in ms, "1" where PUBLISH counts all who listen, permits,
 * the inbox that the place had where that was another one.
 *
 * Reply: { 1, the permits of another where they are not the same, 1 where a PUBLISH was denied } where it was taken.
 * Otherwise { 0, what it holds, in how many ms there is room where the place is the first and -1 elsewhere, 1 where a
 * PUBLISH was denied }.
 */
export const PLACE_TO_SHARE = script(
  SERVER_TIME,
  SHARES,
  QUEUE,
  `
local waiter = ARGV[1] .. " " .. ARGV[2]
local function take(shares)
  forget(KEYS[2], waiter)
  local others = join_shares(KEYS[1], shares, ARGV[3], ARGV[4], ARGV[6])
  if has_room(shares, ARGV[6]) then
    choose(KEYS[2], ARGV[5])
  end
  return { 1, others, publish_is_denied }
end
local value = redis.call("GET", KEYS[1])
local shares = value and shares_in(value)
if entry_of(shares, ARGV[3]) then
  return { 0, value, -1, 0 }
end
if value == "${reservedFor("")}" .. ARGV[1] then
  return take({})
end
keep_place(KEYS[2], waiter, ARGV[7] and ARGV[1] .. " " .. ARGV[7])
if not value or (shares and has_room(shares, ARGV[6])) then
  local chosen = choose(KEYS[2], ARGV[5], waiter)
  if chosen == waiter then
    return take(shares or {})
  end
  value = value or reserve(KEYS[1], KEYS[2], chosen)
end
if first_after(KEYS[2], 0) ~= waiter then
  return { 0, value, -1, publish_is_denied }
end
if not shares then
  return { 0, value, redis.call("PTTL", KEYS[1]), publish_is_denied }
end
local ends = {}
for index, share in ipairs(shares) do
  ends[index] = share[2]
end
table.sort(ends)
local ends_at = ends[#ends - most_of(ARGV[6], shares) + 1] or ends[#ends]
return { 0, value, ends_at - now_ms(), publish_is_denied }
`,
);
