-- Removes a user from the room.
-- ARGV  1: user   2: reason   3: only end a slot given up to this microsecond, and ignore the line;
--       '' to remove the user in any case
-- reply 1 when the user was removed, else 0
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
