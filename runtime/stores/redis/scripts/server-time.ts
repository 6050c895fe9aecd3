/** The server's clock, which may step. It is asked at most once in a script. */
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
