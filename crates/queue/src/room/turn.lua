-- Takes the right to let people in, which one worker at a time has, or keeps it.
-- KEYS  7: admission:lock:{<event>}   who has it, and in which epoch
-- ARGV  1: who asks   2: how long it lasts, in milliseconds
-- reply { 1, epoch }, or { 0 } when another worker has it; each owner's epoch comes after the one before, also after a loss
-- cost  O(1)
local LOCK = KEYS[7]
local held = redis.call('GET', LOCK)
local owner, epoch = string.match(held or '', '^([^ ]+) ([^ ]+)$')
if held and owner ~= ARGV[1] then
  return { 0 }
end
if not held then
  room.turn = (room.turn or 0) + 1
  redis.call('HSET', ROOM, 'turn', text(room.turn))
  epoch = text(room.generation) .. '-' .. text(room.turn)
end
redis.call('SET', LOCK, ARGV[1] .. ' ' .. epoch, 'PX', ARGV[2])
return { 1, epoch }
