-- Slots that go on in a room which Redis has lost, before it is opened again.
-- KEYS  1: {<event>}:room   2: {<event>}:active   3: {<event>}:slots
-- ARGV  1, 2: how long a slot lasts without a sign of life, and at all, in microseconds
--       3…: user, slot, order key and since, of each of them
-- reply 1, or 0 when somebody else has opened the room
-- cost  O(k log n) for k slots
if redis.call('EXISTS', KEYS[1]) == 1 then
  return { 0 }
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local idle, total = tonumber(ARGV[1]), tonumber(ARGV[2])
for place = 3, #ARGV, 4 do
  local user, id, order, since = ARGV[place], ARGV[place + 1], ARGV[place + 2], ARGV[place + 3]
  redis.call('ZADD', KEYS[2], string.format('%.0f', math.min(now + idle, tonumber(since) + total)), user)
  redis.call('HSET', KEYS[3], user, id .. ' ' .. order .. ' ' .. since .. ' 1 ' .. since)
end
return { 1 }
