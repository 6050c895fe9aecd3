import { script } from "./script";
import { REVOKED, REWRITE } from "./values";

/**
 * Ends a hold for who has it alone; for everybody else the key stays as it is.
 *
 * KEYS: lock. ARGV: requestId.
 *
 * Reply: 1 where it is revoked, otherwise { what it holds }.
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
  return { value } -- Ours expire: another program wrote it.
end
rewrite(KEYS[1], revoked, math.max(left, 1))
return 1
`,
);
