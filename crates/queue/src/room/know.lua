-- Marks a slot as recorded in the database, or takes it back and returns its owner to their old
-- position.
-- ARGV  1: user   2: slot   3: 1 when the database has it, 0 when it could not be written
-- reply 1 when the slot changed; 0 when the user has another slot or none, or when another process
--       has recorded it meanwhile
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
