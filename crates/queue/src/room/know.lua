-- The database knows of a slot; or it does not, and its owner stands in line again where they stood.
-- ARGV  1: user   2: slot   3: 1 when the database knows, 0 when it could not be told
-- reply 1 when the slot was theirs, else 0; a slot that another process has recorded is not taken back
-- cost  O(log n)
local user = ARGV[1]
local slot = slot_of(user)
if not slot or slot.id ~= ARGV[2] then
  return { 0 }
end
if ARGV[3] == '1' then
  slot.known = 1
  keep_slot(user, slot)
elseif slot.known == 1 then
  return { 0 }
else
  forget(user)
  redis.call('ZADD', QUEUE, text(slot.order), user)
  redis.call('ZADD', SEEN, text(here), user)
  note('kind', 'returned', 'user', user, 'order', text(slot.order))
end
return { 1 }
