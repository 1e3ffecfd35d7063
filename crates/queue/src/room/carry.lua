-- Slots that go on in a room which Redis has lost, some at a time, before it is opened again. Whoever does this has time for more.
-- KEYS  1: {<event>}:room   2: {<event>}:active   3: {<event>}:slots   4: {<event>}:opening, which whoever opens it holds
-- ARGV  1, 2: how long a slot lasts without a sign of life, and at all, in microseconds
--       3: who opens the room   4: how long the right to do so lasts from now on, in milliseconds
--       5…: user, slot, order key and since, of each of them
-- reply 1, or 0 when somebody else opens the room or has
-- cost  O(k log n) for k slots
if redis.call('GET', KEYS[4]) ~= ARGV[3] or redis.call('EXISTS', KEYS[1]) == 1 then
  return { 0 }
end
redis.call('PEXPIRE', KEYS[4], ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local idle, total = tonumber(ARGV[1]), tonumber(ARGV[2])
for place = 5, #ARGV, 4 do
  local user, id, order, since = ARGV[place], ARGV[place + 1], ARGV[place + 2], ARGV[place + 3]
  redis.call('ZADD', KEYS[2], string.format('%.0f', math.min(now + idle, tonumber(since) + total)), user)
  redis.call('HSET', KEYS[3], user, id .. ' ' .. order .. ' ' .. since .. ' 1 ' .. since)
end
return { 1 }
