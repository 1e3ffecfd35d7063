-- Gives the next places.
-- ARGV  1: how many
-- reply the first of them; -2 if nobody has to wait; -3 if not so many are set aside
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
