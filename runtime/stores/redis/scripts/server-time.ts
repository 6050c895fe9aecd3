/** The server's time in microseconds. Its clock may step, so a script reads it at most once. */
export const SERVER_TIME = `
local now
local function now_us()
  if not now then
    local time = redis.call("TIME")
    now = time[1] * 1000000 + time[2]
  end
  return now
end
`;
