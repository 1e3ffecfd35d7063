-- Gives the next positions.
-- ARGV  1: how many
-- reply the first of them; -2 if the room is closed; -3 if not enough are reserved
-- cost  O(1)
local count = tonumber(ARGV[1])
if room.active == 0 then
  return answer(CLOSED)
end
if room.tail + count > room.reserved then
  return answer(USED_UP)
end
room.tail = room.tail + count
keep('tail')
return answer(room.tail - count + 1)
