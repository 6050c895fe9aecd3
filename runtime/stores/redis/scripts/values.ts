import { revokedFrom } from "../../value";

/** What a key holds. */
export const VALUES = `
-- In an array: the text, false where the key is free, or the error of reading it (other data than text is somebody's, too).
local function found(lock)
  return { redis.pcall("GET", lock) }
end
`;

/** What is left of a hold that is revoked. */
export const REVOKED = `
local function revoked_from(id)
  return "${revokedFrom("")}" .. string.sub(id, ${revokedFrom("").length + 1})
end
`;

/** Of a key that is there. Who has written may go on where no memory is left: so what is held is renewed and ended there, too. */
export const REWRITE = `
local function rewrite(lock, value, ms)
  redis.call("PEXPIRE", lock, ms)
  redis.call("SET", lock, value, "PX", ms)
end
`;

/** What a script for many keys replies for one that failed by itself. */
export const ERROR_OF = `
local function error_of(failure)
  return type(failure) == "table" and failure or redis.error_reply(failure)
end
`;

/**
 * A server that takes no writes says so of the first key as of all. It is the reply to the command then: a client looks for
 * another server by the errors of commands (`reconnectOnError` of ioredis), and by no others.
 */
export const OF_ALL = `
local function of_all(replies)
  local first = replies[1]
  local is_read_only = type(first) == "table" and first.err and string.find(first.err, "READONLY", 1, true)
  return is_read_only and first or replies
end
`;

/** How a script for many keys reads its arguments: all requestIds are in one, since fewer arguments cost less. */
export const MANY = `
local function id_of(index)
  return string.sub(ARGV[1], 32 * index - 31, 32 * index)
end

local function lock_time_of(index)
  return ARGV[index + 1] or ARGV[2]
end
`;
