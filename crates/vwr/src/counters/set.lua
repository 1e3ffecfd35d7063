-- Applies an operator's decision to a room, unless a later one has been applied.
-- KEYS  1: {<event>}:vwr
-- ARGV  1: version   2: epoch   3: opened   4: active   5: paused   6: rate   7: fail open
--       8: last position that may have been given   9: last position admitted
-- reply { 1 } if the room changed, else { 0 }
-- cost  O(1)
local epoch = tonumber(redis.call('HGET', KEYS[1], 'epoch'))
local version = tonumber(redis.call('HGET', KEYS[1], 'version'))
if epoch and version >= tonumber(ARGV[1]) then
  return { 0 }
end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
redis.call('HSET', KEYS[1], 'version', ARGV[1], 'epoch', ARGV[2], 'opened', ARGV[3], 'active', ARGV[4], 'paused', ARGV[5],
  'rate', ARGV[6], 'open', ARGV[7], 'moved', now)
if not epoch or epoch < tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], 'tail', ARGV[8], 'reserved', ARGV[8], 'serving', ARGV[9], 'leader', '', 'term', 0, 'until', 0)
end
return { 1 }
