-- Somebody does not stand in a line any more.
-- KEYS  1: queue:lines:{<user>}
-- ARGV  1: event   2: only if they arrived at least so many seconds ago; 0 in any case
-- reply 1 when that was known, else 0
-- cost  O(log k) for k events
local now = tonumber(redis.call('TIME')[1])
local arrived = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]))
if arrived and arrived <= now - tonumber(ARGV[2]) then
  return redis.call('ZREM', KEYS[1], ARGV[1])
end
return 0
