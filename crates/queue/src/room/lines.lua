-- Adds an event to the set of a user's lines, unless the set is full.
-- KEYS  1: queue:lines:{<user>}   events whose lines they joined, by the second of the last join
-- ARGV  1: event   2: most lines   3: lifetime of the set, in seconds   4: longest duration of a
--       join, in seconds
-- reply { 1 } when the user may join; else { 0, event, … } with events they may have left
-- cost  O(k) for k events
local now = tonumber(redis.call('TIME')[1])
local known = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not known and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
  local settled = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[4]))
  table.insert(settled, 1, 0)
  return settled
end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return { 1 }
