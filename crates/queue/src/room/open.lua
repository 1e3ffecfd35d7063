-- Begins a life of a room, unless one goes on or another is about to begin one.
-- KEYS  1: {<event>}:room   2: {<event>}:opening, which whoever opens it holds
-- ARGV  1: generation   2: threshold   3: paused   4: epoch   5: for how long nobody is let in, in microseconds
--       6: how many steps the journal begins with   7: 1 when a life was lost   8: who opens it
-- reply 1 when it began, else 0
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
