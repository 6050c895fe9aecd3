import { script } from "./script";
import { SERVER_TIME } from "./server-time";
import { TOKEN } from "./token";

/**
 * Takes a free key: where SET cannot tell what it found, and where a fencing token is wanted.
 *
 * KEYS: lock, and for a fencing token fence. ARGV: requestId, lock time in ms.
 *
 * Reply: { 1, token } where it was taken, otherwise { 0, what it holds }.
 */
export const ACQUIRE = script(
  SERVER_TIME,
  TOKEN,
  `
local holder = redis.call("GET", KEYS[1])
if holder then
  return { 0, holder }
end
local token = KEYS[2] and draw_token(KEYS[2], ARGV[2])
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return { 1, token }
`,
);
