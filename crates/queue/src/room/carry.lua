-- Restores slots that were active when Redis lost the room, one page at a time, before the room is
-- opened again. Each page also extends the opener's lock.
-- KEYS  1: {<event>}:room   2: {<event>}:active   3: {<event>}:slots
--       4: {<event>}:opening, the lock of the process that opens the room
-- ARGV  1: slot idle timeout, in microseconds   2: slot lifetime, in microseconds
--       3: id of the opener   4: new lifetime of its lock, in milliseconds
--       5…: user, slot, order key and start time of each slot
-- reply 1; 0 when another process holds the lock or has opened the room
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
