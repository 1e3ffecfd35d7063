-- Takes note that somebody is about to stand in a line, unless they stand in as many others as one may.
-- KEYS  1: queue:lines:{<user>}   the events whose lines they stand in or stood in, by the second in which they last arrived
-- ARGV  1: event   2: in how many one may stand   3: how long this is remembered, in seconds   4: how long an arrival may take
-- reply { 1 } when they may; else { 0, event, … } with those whose lines they may have left since they arrived
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
