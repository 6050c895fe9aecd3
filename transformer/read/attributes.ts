/** The attributes that name the key. */
const KEY_ATTRIBUTES = ["businessFlag", "keyName", "keyType", "keyClass", "fieldName", "key"];

/** The attributes that become options of the lock. */
export const OPTION_NAMES = [
  "lockTime",
  "retryTimes",
  "waitTime",
  "onFailure",
  "onLost",
  "watchdog",
  "lockAtLeast",
  "holdAtMost",
  "autoUnlock",
  "release",
  "reentrant",
  "fencing",
  "store",
  "replicas",
  "mode",
  "permits",
  "each",
] as const;

/** Every attribute that a tag may have. */
export const ATTRIBUTES: readonly string[] = [...KEY_ATTRIBUTES, "when", ...OPTION_NAMES];
