-- What every script of a room begins with: the room, the time, and how it is told.
-- KEYS  1: {<event>}:vwr   a hash: epoch, opened, active, paused, rate, open, tail, reserved, serving, version, moved, leader, term,
--                          until; instants in microseconds
-- reply { a number, epoch, opened, active, paused, rate, open, tail, serving, version }, or { -1 } if the room is not known
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
