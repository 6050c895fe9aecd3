import { script } from "./script";

/**
 * Checks whether the user may run the commands that scripts need to end a hold. Servers before Redis 7 cannot check that.
 *
 * KEYS: lock, then its queue and its shared holds, if it can have any.
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
if KEYS[2] then
  needed[#needed + 1] = { "time" }
  needed[#needed + 1] = { "zrangebyscore", KEYS[2], "0", "0" }
  needed[#needed + 1] = { "zrem", KEYS[2], "" }
  needed[#needed + 1] = { "zscore", KEYS[2], "" }
  needed[#needed + 1] = { "unlink", KEYS[2] }
  needed[#needed + 1] = { "zcount", KEYS[2], "0", "0" }
end
if KEYS[3] then
  for _, command in ipairs({
    { "zadd", KEYS[3], "0", "" }, { "zrem", KEYS[3], "" }, { "zscore", KEYS[3], "" },
    { "zrangebyscore", KEYS[3], "0", "0" }, { "zrevrangebyscore", KEYS[3], "0", "0" }, { "zrevrange", KEYS[3], "0", "0" },
    { "exists", KEYS[3] }, { "pexpire", KEYS[3], "1" }, { "unlink", KEYS[3] },
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
