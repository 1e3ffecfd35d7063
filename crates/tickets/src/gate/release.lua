-- Removes one owner's marks; marks of others stay.
-- KEYS  gate:{<event>}:<seat>, one per seat, all in one slot
-- ARGV  1: owner, 16 bytes
-- reply how many marks were removed
-- cost  O(seats): one MGET and one DEL a seat
local removed = 0
local marks = redis.call('MGET', unpack(KEYS))
for place = 1, #KEYS do
  if marks[place] == ARGV[1] then
    removed = removed + redis.call('DEL', KEYS[place])
  end
end
return removed
