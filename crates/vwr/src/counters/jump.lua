-- Admits more visitors at once.
-- ARGV  1: epoch   2: how many
-- reply how many were admitted
-- cost  O(1)
local before = room.serving
if room.epoch == tonumber(ARGV[1]) and room.serving < room.tail then
  room.serving = math.min(room.serving + tonumber(ARGV[2]), room.tail)
  keep('serving')
end
return answer(room.serving - before)
