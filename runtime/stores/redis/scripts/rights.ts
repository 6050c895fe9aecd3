import { script } from "./script";

/**
 * Checks whether the user may run the commands that scripts need to end a hold. Servers before Redis 7 cannot check that.
 *
 * KEYS: lock. ARGV: the names of its queue and its shared holds, if it can have any, with the key prefix. They are no keys of the command, because
 * the keys of a command must be on one node, and the slot may be migrating.
 *
 * Reply: { 1 } if the user may run all of them, or if the server cannot check. Otherwise { 0, the first denied command }.
 */
export const RIGHTS = script(`
if not redis.acl_check_cmd then
  return { 1 }
end
local needed = {
  { "get", KEYS[1] }, { "mget", KEYS[1] }, { "set", KEYS[1], "" }, { "del", KEYS[1] },
  { "pttl", KEYS[1] }, { "pexpire", KEYS[1], "1" },
}
if ARGV[1] then
  needed[#needed + 1] = { "time" }
  needed[#needed + 1] = { "zrangebyscore", ARGV[1], "0", "0" }
  needed[#needed + 1] = { "zrem", ARGV[1], "" }
  needed[#needed + 1] = { "zscore", ARGV[1], "" }
  needed[#needed + 1] = { "unlink", ARGV[1] }
  needed[#needed + 1] = { "zcount", ARGV[1], "0", "0" }
end
if ARGV[2] then
  for _, command in ipairs({
    { "zadd", ARGV[2], "0", "" }, { "zrem", ARGV[2], "" }, { "zscore", ARGV[2], "" },
    { "zrangebyscore", ARGV[2], "0", "0" }, { "zrevrangebyscore", ARGV[2], "0", "0" }, { "zrevrange", ARGV[2], "0", "0" },
    { "exists", ARGV[2] }, { "pexpire", ARGV[2], "1" }, { "unlink", ARGV[2] },
  }) do
    needed[#needed + 1] = command
  end
end
for _, command in ipairs(needed) do
  if not redis.acl_check_cmd(unpack(command)) then
    return { 0, command[1] }
  end
end
return { 1 }
`);
