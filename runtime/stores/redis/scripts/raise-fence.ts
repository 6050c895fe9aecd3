import { FENCING_STRIDE } from "../../port";
import { script } from "./script";
import { KEEP_TOKEN } from "./token";

/**
 * Sees to it that all tokens that are drawn from now on are larger than one that was drawn elsewhere, and those that it
 * stands for.
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
