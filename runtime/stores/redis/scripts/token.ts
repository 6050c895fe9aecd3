import { FENCING_STRIDE } from "../../port";
import { script } from "./script";
import { SERVER_TIME } from "./server-time";

/** How the error begins of a counter that no process of ours has written. */
export const BAD_COUNTER = "BADFENCE";

/** How long the counter of a lock's tokens outlives the lock. */
const FENCE_OUTLIVES_MS = 3_600_000;

/** A counter may hold at most this, so that the next token is exact, and so are those that its holder counts on to. */
const LARGEST_COUNTER = Number.MAX_SAFE_INTEGER - FENCING_STRIDE;

/**
 * `fence` holds the last token given out, with those that the holder counts on to. From anything else a script would draw
 * tokens that do not rise, or that are no numbers: it fails instead, before it has changed anything.
 */
export const KEEP_TOKEN = `
local function last_token(fence)
  local text = redis.call("GET", fence) or "0"
  local last = #text <= ${String(LARGEST_COUNTER).length} and string.find(text, "^%d+$") and tonumber(text)
  if not last or last > ${LARGEST_COUNTER} then
    error("${BAD_COUNTER} " .. fence .. " holds " .. string.gsub(string.sub(text, 1, 40), "[^%w%p]", "?"), 0)
  end
  return last
end

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
  local token = math.max(now_us(), last_token(fence) + 1)
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
