import { revokedFrom } from "../../value";

/** Reads the value of a key. */
export const VALUES = `
-- Returns an array with the text, false if the key is free, or the error if the data is not text. Such a key belongs to somebody else, too.
local function found(lock)
  return { redis.pcall("GET", lock) }
end
`;

/** Returns the ID that replaces a `requestId` when its hold is revoked. */
export const REVOKED = `
local function revoked_from(id)
  return "${revokedFrom("")}" .. string.sub(id, ${revokedFrom("").length + 1})
end
`;

/**
 * Changes the value of an existing key. PEXPIRE comes first: after its first write, a script may continue even if no memory is left. So
 * holds can be renewed and ended in that case, too.
 */
export const REWRITE = `
local function rewrite(lock, value, ms)
  redis.call("PEXPIRE", lock, ms)
  redis.call("SET", lock, value, "PX", ms)
end
`;

/** Returns the reply for one key that failed, in a script for many keys. */
export const ERROR_OF = `
local function error_of(failure)
  return type(failure) == "table" and failure or redis.error_reply(failure)
end
`;

/**
 * Returns the replies, or only the error if the server rejects all writes. A client checks the error of a command to decide whether it
 * needs another server (`reconnectOnError` of ioredis), but does not check errors inside a reply. Such a server rejects the first key like
 * all others.
 */
export const OF_ALL = `
local function of_all(replies)
  local first = replies[1]
  local is_read_only = type(first) == "table" and first.err and string.find(first.err, "READONLY", 1, true)
  return is_read_only and first or replies
end
`;

/** Reads the arguments of a script for many keys. All requestIds are in one argument, because fewer arguments cost less. */
export const MANY = `
local function id_of(index)
  return string.sub(ARGV[1], 32 * index - 31, 32 * index)
end

local function lock_time_of(index)
  return ARGV[index + 1] or ARGV[2]
end
`;
