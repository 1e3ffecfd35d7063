-- Somebody goes.
-- ARGV  1: user   2: why   3: only out of a slot that was given until this microsecond, and not out of line; or '' in any case
-- reply 1 when they were here, else 0
-- cost  O(log n)
local user, slot = ARGV[1], slot_of(ARGV[1])
local goes = slot or redis.call('ZSCORE', QUEUE, user)
if ARGV[3] ~= '' then
  goes = slot and slot.given <= tonumber(ARGV[3])
end
if goes then
  gone(user, ARGV[2])
  return { 1 }
end
return { 0 }
