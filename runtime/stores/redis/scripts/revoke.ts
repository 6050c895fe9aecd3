import { script } from "./script";
import { SERVER_TIME } from "./server-time";
import { SHARES } from "./shares";
import { REWRITE } from "./values";

/**
 * Ends a hold for who has it; for everybody else the key stays as it is.
 *
 * KEYS: lock. ARGV: requestId.
 *
 * Reply: 1 where it is revoked, otherwise { what it holds }.
 */
export const REVOKE = script(
  SERVER_TIME,
  SHARES,
  REWRITE,
  `
local value = redis.pcall("GET", KEYS[1])
local revoked = revoked_from(ARGV[1])
if value == revoked then
  return 1
end
if value == ARGV[1] then
  local left = redis.call("PTTL", KEYS[1])
  if left < 0 then
    return { value } -- Ours expire: another program wrote it.
  end
  rewrite(KEYS[1], revoked, math.max(left, 1))
  return 1
end
local shares = shares_in(value)
local index = share_of(shares, ARGV[1])
if index then
  shares[index][1] = revoked
  write_on(KEYS[1], shares)
  return 1
end
return share_of(shares, revoked) and 1 or { value }
`,
);
