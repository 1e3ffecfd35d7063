-- Removes an event from the set of a user's lines.
-- KEYS  1: queue:lines:{<user>}
-- ARGV  1: event   2: only if the user joined at least this many seconds ago; 0 for any time
-- reply 1 when the event was removed, else 0
-- cost  O(log k) for k events
local now = tonumber(redis.call('TIME')[1])
local arrived = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]))
if arrived and arrived <= now - tonumber(ARGV[2]) then
  return redis.call('ZREM', KEYS[1], ARGV[1])
end
return 0
