-- More places were set aside.
-- ARGV  1: of which opening   2: from behind which one on   3: up to which one
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
