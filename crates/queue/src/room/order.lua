-- Carries out an operator's command.
-- ARGV  1: threshold, paused, resumed, cleared, or '' to read only   2: the threshold
-- reply as `answer` in room.lua
-- cost  O(1); clearing O(n)
local what = ARGV[1]
if what == 'threshold' and tonumber(ARGV[2]) ~= room.threshold then
  room.threshold = tonumber(ARGV[2])
  redis.call('HSET', ROOM, 'threshold', ARGV[2])
  note('kind', 'threshold', 'number', ARGV[2])
elseif what == 'paused' and room.paused == 0 or what == 'resumed' and room.paused == 1 then
  room.paused = what == 'paused' and 1 or 0
  redis.call('HSET', ROOM, 'paused', room.paused)
  note('kind', what)
elseif what == 'cleared' then
  for _, user in ipairs(redis.call('HKEYS', SLOTS)) do
    spend(user, slot_of(user))
  end
  redis.call('DEL', QUEUE, ACTIVE, SEEN, SLOTS)
  room.epoch = room.epoch + 1
  redis.call('HSET', ROOM, 'epoch', text(room.epoch))
  note('kind', 'cleared', 'number', text(room.epoch))
end
return answer(ABSENT)
