-- Adds reserved positions.
-- ARGV  1: epoch   2: the position before the first   3: the last position
-- reply 0
-- cost  O(1)
if room.epoch == tonumber(ARGV[1]) and room.reserved < tonumber(ARGV[3]) then
  room.reserved = tonumber(ARGV[3])
  keep('reserved')
  if room.behind == 1 then
    room.tail, room.behind = math.max(room.tail, tonumber(ARGV[2])), 0
    keep('tail', 'behind')
  end
end
return answer(0)
