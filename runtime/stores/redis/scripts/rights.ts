import { script } from "./script";

/**
 * Checks whether the server has the commands that scripts need to end a hold, and the user may run them. That includes EVAL, because a restart
 * empties the cache for EVALSHA. Servers before Redis 7 cannot check that.
 *
 * KEYS: lock, then its queue and its shared holds, if it can have any. While their slot migrates, these two are in ARGV instead, with the key
 * prefix. Only names in KEYS let the server check that one selector of the user covers them together.
 *
 * Reply: { 1 } if the user may run all of them, or if the server cannot check. Otherwise { 0, the first denied command }, or { 2, the first
 * command that the server does not have }.
 */
export const RIGHTS = script(`
if not redis.acl_check_cmd then
  return { 1 }
end
local queue, holds = KEYS[2] or ARGV[1], KEYS[3] or ARGV[2]
local needed = {
  { "eval", "", "0" }, { "get", KEYS[1] }, { "mget", KEYS[1] }, { "set", KEYS[1], "" }, { "del", KEYS[1] },
  { "pttl", KEYS[1] }, { "pexpire", KEYS[1], "1" },
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
return { 1 }
`);
