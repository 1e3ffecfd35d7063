-- Prelude of every script of a room: the room, the time, and the reply.
-- KEYS  1: {<event>}:vwr   a hash: epoch, opened, active, paused, rate, open, tail, reserved,
--          serving, version, moved, leader, term, until, behind; times in microseconds
-- ARGV  the last three: epoch, tail and serving as last seen by the caller
-- reply { a number, epoch, opened, active, paused, rate, open, tail, serving, version };
--       { -1 } if Redis does not have the room
local ROOM = KEYS[1]
local CLOSED, USED_UP, THEIRS = -2, -3, -4

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local room = {}
do
  local fields = redis.call('HGETALL', ROOM)
  for place = 1, #fields, 2 do
    local name, value = fields[place], fields[place + 1]
    room[name] = name == 'leader' and value or tonumber(value)
  end
end

local function keep(...)
  for _, name in ipairs({ ... }) do
    local value = room[name]
    redis.call('HSET', ROOM, name, type(value) == 'number' and string.format('%.0f', value) or value)
  end
end

local function answer(number)
  return {
    number, room.epoch, room.opened, room.active, room.paused, room.rate, room.open, room.tail, room.serving, room.version,
  }
end

if not room.epoch then
  return { -1 }
end

-- If a lagging replica was promoted, counters must not go back. Other processes may have seen
-- higher positions, so the next ones are given after everything that was reserved.
do
  local epoch, tail, serving = tonumber(ARGV[#ARGV - 2]), tonumber(ARGV[#ARGV - 1]), tonumber(ARGV[#ARGV])
  if epoch == room.epoch and (tail > room.tail or serving > room.serving) then
    room.tail, room.serving = math.max(room.tail, tail), math.max(room.serving, serving)
    room.reserved, room.behind = room.tail, 1
    keep('tail', 'serving', 'reserved', 'behind')
  end
end
