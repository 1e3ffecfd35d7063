-- Acquires or renews the admission lock of a room, which one worker at a time holds.
-- KEYS  7: admission:lock:{<event>}   its holder and epoch
-- ARGV  1: id of the worker   2: lifetime of the lock, in milliseconds
-- reply { 1, epoch }, or { 0 } when another worker holds it; epochs increase with every holder,
--       also after a loss
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
