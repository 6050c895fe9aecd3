import { script } from "./script";
import { SERVER_TIME } from "./server-time";
import { TOKEN } from "./token";

/**
 * Acquires a free key. It replaces SET on servers whose SET cannot return the value that it found, and for requests with a fencing token.
 *
 * KEYS: lock, and the fence if a fencing token is requested. ARGV: requestId, lock time in ms.
 *
 * Reply: { 1, token } if the key was acquired, otherwise { 0, the value of the key }.
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
