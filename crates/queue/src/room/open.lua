-- Begins a generation of a room, unless the room is open or another process holds the opening lock.
-- KEYS  1: {<event>}:room   2: {<event>}:opening, the lock of the process that opens the room
-- ARGV  1: generation   2: threshold   3: paused   4: epoch
--       5: grace period without admissions, in microseconds
--       6: number of steps already in the journal   7: 1 when the previous generation was lost
--       8: id of the opener
-- reply 1 when the generation began, else 0
-- cost  O(1)
if redis.call('GET', KEYS[2]) ~= ARGV[8] then
  return { 0 }
end
redis.call('DEL', KEYS[2])
if redis.call('EXISTS', KEYS[1]) == 1 then
  return { 0 }
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('HSET', KEYS[1], 'generation', ARGV[1], 'threshold', ARGV[2], 'paused', ARGV[3], 'epoch', ARGV[4],
  'seq', ARGV[6], 'last', 0, 'changed', string.format('%.0f', now), 'opens', string.format('%.0f', now + tonumber(ARGV[5])), 'lost', ARGV[7],
  'first', 0, 'minute', 0, 'current', 0, 'before', 0)
return { 1 }
