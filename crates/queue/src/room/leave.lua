-- Somebody goes.
-- ARGV  1: user   2: why
-- reply 1 when they were here, else 0
-- cost  O(log n)
local user = ARGV[1]
if slot_of(user) or redis.call('ZSCORE', QUEUE, user) then
  gone(user, ARGV[2])
  return { 1 }
end
return { 0 }
