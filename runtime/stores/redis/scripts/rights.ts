import { script } from "./script";

/**
 * Checks whether the server has the commands that scripts need to end a hold, and the user may run them. That includes EVAL, because a restart
 * empties the cache for EVALSHA. Returns the reply about the first command that fails, or nothing. Servers before Redis 7 cannot check that.
 */
const FAULT_OF_RIGHTS = `
local function fault_of_rights(lock, queue, holds)
  local needed = {
    { "eval", "", "0" }, { "get", lock }, { "mget", lock }, { "set", lock, "" }, { "del", lock },
    { "pttl", lock }, { "pexpire", lock, "1" },
  }
  if queue then
    needed[#needed + 1] = { "time" }
    needed[#needed + 1] = { "zrangebyscore", queue, "0", "0" }
    needed[#needed + 1] = { "zrem", queue, "" }
    needed[#needed + 1] = { "zscore", queue, "" }
    needed[#needed + 1] = { "unlink", queue }
    needed[#needed + 1] = { "zcount", queue, "0", "0" }
  end
  if holds then
    for _, command in ipairs({
      { "zadd", holds, "0", "" }, { "zrem", holds, "" }, { "zscore", holds, "" },
      { "zrangebyscore", holds, "0", "0" }, { "zrevrangebyscore", holds, "0", "0" }, { "zrevrange", holds, "0", "0" },
      { "exists", holds }, { "pexpire", holds, "1" }, { "unlink", holds },
    }) do
      needed[#needed + 1] = command
    end
  end
  for _, command in ipairs(needed) do
    local exists, isAllowed = pcall(redis.acl_check_cmd, unpack(command))
    if not exists then
      return { 2, command[1] }
    end
    if not isAllowed then
      return { 0, command[1] }
    end
  end
end
`;

/**
 * Checks the commands that scripts need.
 *
 * KEYS: lock, then its queue and its shared holds, if it can have any. While their slot migrates, these two are in ARGV instead, with the key
 * prefix. Only names in KEYS let the server check that one selector of the user covers them together.
 *
 * Reply: { 1 } if the user may run all of them, or if the server cannot check. Otherwise { 0, the first denied command }, or { 2, the first
 * command that the server does not have }.
 */
export const RIGHTS = script(
  FAULT_OF_RIGHTS,
  `
return redis.acl_check_cmd and fault_of_rights(KEYS[1], KEYS[2] or ARGV[1], KEYS[3] or ARGV[2]) or { 1 }
`,
);

/**
 * Checks a server that may be a node of a cluster, and acquires a free key if the check succeeds, so that the first lock of a process needs one
 * command.
 *
 * KEYS: lock, its queue, its shared holds. ARGV: requestId, lock time in ms.
 *
 * Reply: { 1, the value that SET found } if the check succeeded. { 0 } or { 2 } as RIGHTS replies. { 3 } if this command cannot check the server.
 */
export const CHECK_AND_ACQUIRE = script(
  FAULT_OF_RIGHTS,
  `
if not redis.acl_check_cmd then
  return { 3 }
end
local info = redis.pcall("INFO", "cluster")
if type(info) ~= "string" or not string.find(info, "cluster_enabled:0", 1, true) then
  return { 3 }
end
return fault_of_rights(KEYS[1], KEYS[2], KEYS[3])
  or { 1, redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2], "NX", "GET") }
`,
);
