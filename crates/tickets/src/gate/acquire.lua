-- Marks every seat for one owner, or none of them.
-- KEYS  gate:{<event>}:<seat>, one per seat, all in one slot
-- ARGV  1: owner, 16 bytes   2: how long a mark lasts, in milliseconds
-- reply list of places (from 1) in KEYS that others have marked; empty when all are now ours
-- cost  O(seats): one MGET and one SET a seat
local busy = {}
local marks = redis.call('MGET', unpack(KEYS))
for place = 1, #KEYS do
  if marks[place] and marks[place] ~= ARGV[1] then
    busy[#busy + 1] = place
  end
end
if #busy == 0 then
  for place = 1, #KEYS do
    redis.call('SET', KEYS[place], ARGV[1], 'PX', ARGV[2])
  end
end
return busy
