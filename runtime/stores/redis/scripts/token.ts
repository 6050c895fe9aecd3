import { FENCING_STRIDE } from "../../port";
import { script } from "./script";
import { SERVER_TIME } from "./server-time";

/** How long the counter of a lock's tokens outlives the lock. */
const FENCE_OUTLIVES_MS = 3_600_000;

/** `fence` holds the last token given out, with those that the holder counts on to. */
export const KEEP_TOKEN = `
local function keep_token(fence, token, lock_time)
  redis.call("SET", fence, string.format("%.0f", token + ${FENCING_STRIDE - 1}), "PX", lock_time + ${FENCE_OUTLIVES_MS})
end
`;

/**
 * Fencing tokens; needs the server's time. The clock makes them rise even when the counter is lost, and that makes them
 * rise even when the clock steps back.
 */
export const TOKEN = `${KEEP_TOKEN}
local function draw_token(fence, lock_time)
  local last = tonumber(redis.call("GET", fence) or 0) or 0
  local token = math.max(now_us(), last + 1)
  keep_token(fence, token, lock_time)
  return string.format("%.0f", token)
end
`;

/**
 * Draws a token by itself.
 *
 * KEYS: fence. ARGV: lock time in ms.
 *
 * Reply: the token.
 */
export const DRAW = script(SERVER_TIME, TOKEN, `return draw_token(KEYS[1], ARGV[1])`);
