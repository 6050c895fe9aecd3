import { script } from "./script";
import { REVOKED, REWRITE } from "./values";

/**
 * Revokes the hold of a caller that holds the key alone. The key keeps everybody else out for the time that the hold has left.
 *
 * KEYS: lock. ARGV: requestId.
 *
 * Reply: 1 if the hold is revoked, otherwise { the value of the key }.
 */
export const REVOKE = script(
  REVOKED,
  REWRITE,
  `
local value = redis.pcall("GET", KEYS[1])
local revoked = revoked_from(ARGV[1])
if value == revoked then
  return 1
end
if value ~= ARGV[1] then
  return { value }
end
local left = redis.call("PTTL", KEYS[1])
if left < 0 then
  return { value } -- Our holds expire, so another program wrote this value.
end
rewrite(KEYS[1], revoked, math.max(left, 1))
return 1
`,
);
