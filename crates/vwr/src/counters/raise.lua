-- More places were set aside.
-- ARGV  1: of which opening   2: up to which one
-- reply 0
-- cost  O(1)
if room.epoch == tonumber(ARGV[1]) and room.reserved < tonumber(ARGV[2]) then
  room.reserved = tonumber(ARGV[2])
  keep('reserved')
end
return answer(0)
