import { FENCING_STRIDE } from "../../port";
import { script } from "./script";
import { SERVER_TIME } from "./server-time";

/** The first word of the error for a token counter that Lockweave did not write. */
export const BAD_COUNTER = "BADFENCE";

/** The time for which the token counter of a lock outlives the lock time. */
const FENCE_OUTLIVES_MS = 3_600_000;

/** The largest value of a counter from which the next token, and the tokens that its holder counts up from it, are exact integers. */
const LARGEST_COUNTER = Number.MAX_SAFE_INTEGER - FENCING_STRIDE;

/**
 * Reads and writes the token counter. It contains the last token that may be in use, with those that its holder counts up to. From any
 * other value, a script would draw tokens that do not rise or are not numbers. So it fails before it changes anything.
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
 * Draws fencing tokens. Needs SERVER_TIME. Because of the clock, tokens rise even if the counter is lost. Because of the counter, they rise
 * even if the clock steps back.
 */
export const TOKEN = `${KEEP_TOKEN}
local function draw_token(fence, lock_time)
  local token = math.max(now_us(), last_token(fence) + 1)
  keep_token(fence, token, lock_time)
  return string.format("%.0f", token)
end
`;

/**
 * Draws a token, and does nothing else.
 *
 * KEYS: fence. ARGV: lock time in ms.
 *
 * Reply: the token.
 */
export const DRAW = script(SERVER_TIME, TOKEN, `return draw_token(KEYS[1], ARGV[1])`);
