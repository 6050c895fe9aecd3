import { FENCING_STRIDE } from "../../port";
import { script } from "./script";
import { KEEP_TOKEN } from "./token";

/**
 * Raises the counter, so that all later tokens are larger than a token that was drawn elsewhere, and larger than the tokens that the holder
 * counts up from it.
 *
 * KEYS: fence. ARGV: token, lock time in ms.
 *
 * Reply: 1.
 */
export const RAISE_FENCE = script(
  KEEP_TOKEN,
  `
if last_token(KEYS[1]) < ARGV[1] + ${FENCING_STRIDE - 1} then
  keep_token(KEYS[1], ARGV[1], ARGV[2])
end
return 1
`,
);
