-- Ends expired slots, removes idle users, then admits from the front of the line.
-- KEYS  7: admission:lock:{<event>}   its holder and epoch
-- ARGV  1: id of the worker   2: its epoch   3: slot idle timeout, in microseconds
--       4: idle timeout at the front of the line   5: extra idle time per user ahead
--       6: most users to end or check in one run   7…: ids for slots, one per admission
-- reply list of { user, slot } of the admitted users, or { -1 } when the epoch is over
-- cost  O(k log n) for k users
if redis.call('GET', KEYS[7]) ~= ARGV[1] .. ' ' .. ARGV[2] then
  return { -1 }
end
local idle, batch = tonumber(ARGV[3]), tonumber(ARGV[6])
for _, user in ipairs(redis.call('ZRANGEBYSCORE', ACTIVE, '-inf', text(here), 'LIMIT', 0, batch)) do
  gone(user, 'expired')
end
-- Checks a part of the line per run. The idle timeout depends on the position (`Limits::silence`).
local from = room.swept or 0
if from >= waiting_count() then
  from = 0
end
local piece = redis.call('ZRANGE', QUEUE, from, from + batch - 1)
local swept = from + #piece
if piece[1] then
  for place, seen in ipairs(redis.call('ZMSCORE', SEEN, unpack(piece))) do
    local silence = tonumber(ARGV[4]) + tonumber(ARGV[5]) * (from + place - 1)
    if seen and tonumber(seen) <= here - silence then
      gone(piece[place], 'idle')
      swept = swept - 1
    end
  end
  redis.call('HSET', ROOM, 'swept', swept)
end
local admitted = {}
for place = 7, #ARGV do
  if not has_room() then
    break
  end
  local first = redis.call('ZRANGE', QUEUE, 0, 0, 'WITHSCORES')
  if not first[1] then
    break
  end
  admit(first[1], tonumber(first[2]), ARGV[place], idle)
  admitted[#admitted + 1] = { first[1], ARGV[place] }
end
return admitted
