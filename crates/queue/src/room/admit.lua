-- Ends what is over, then lets in whoever's turn it is.
-- KEYS  7: admission:lock:{<event>}   who does this at the moment, and in which epoch
-- ARGV  1: who asks   2: the epoch they have   3: how long a slot lasts without a sign of life, in
--       microseconds   4: how long a place does at the front   5: how much longer for each who is ahead   6: how many may be sent
--       away at once   7…: ids for slots, one per person at most
-- reply list of { user, slot } of those who were let in, or { -1 } when that epoch is over
-- cost  O(k log n) for k people
if redis.call('GET', KEYS[7]) ~= ARGV[1] .. ' ' .. ARGV[2] then
  return { -1 }
end
local idle, batch = tonumber(ARGV[3]), tonumber(ARGV[6])
for _, user in ipairs(redis.call('ZRANGEBYSCORE', ACTIVE, '-inf', text(here), 'LIMIT', 0, batch)) do
  gone(user, 'expired')
end
-- A piece of the line each time: who may be silent for how long depends on where they stand, as `Limits::silence` has it.
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
