-- What every script of a room begins with: its keys, the time, and how a step is noted.
-- KEYS  1: {<event>}:queue    who waits, by order key
--       2: {<event>}:active   who is in, by the microsecond of the room's own time in which the slot ends
--       3: {<event>}:seen     who waits, by the last sign of life in the room's own time
--       4: {<event>}:slots    per user in: slot, order key, since in the room's own time, 1 once the database knows, when it was given
--       5: {<event>}:room     threshold, pause, epoch, numbering, pace, how many came and were let in, how long nobody could
--       6: {<event>}:journal  steps that are on their way to the database
--       8: {<event>}:spent    per user who was in or left: the place of their last turn, when it was given, and the furthest place they used
--       9: {<event>}:spent-before   the same of a day before
local QUEUE, ACTIVE, SEEN, SLOTS, ROOM, JOURNAL = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local SPENT, SPENT_BEFORE = KEYS[8], KEYS[9]
local ABSENT, WAITING, INSIDE, FULL, UNKNOWN, UNSURE = 0, 1, 2, 3, 4, 5
-- Longer than any outage of the database should take at full speed; beyond it the oldest steps are lost, and verifying says so.
local MAX_STEPS = 5000000
-- As `spent::KEPT`, in microseconds.
local SPENT_KEPT = 90000000000

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function text(number)
  return string.format('%.0f', number)
end

local room = {}
do
  local fields = redis.call('HGETALL', ROOM)
  for place = 1, #fields, 2 do
    room[fields[place]] = tonumber(fields[place + 1])
  end
end

-- The room's own time, as `presence.rs` has it: while no script ran, nobody could show a sign of life. It does not count beyond this. Where
-- Redis's clock was put back, that time counts twice.
local LONGEST_GAP = 3000000
local away = room.away or 0
if room.generation then
  local silent = now - (room.noticed or now)
  if silent > LONGEST_GAP or silent < 0 then
    away = away + (silent < 0 and silent or silent - LONGEST_GAP)
    redis.call('HSET', ROOM, 'away', text(away), 'noticed', text(now))
  elseif silent >= 1000000 or not room.noticed then
    redis.call('HSET', ROOM, 'noticed', text(now))
  end
end
local here = now - away

local function note(...)
  room.seq = room.seq + 1
  redis.call('HSET', ROOM, 'seq', text(room.seq), 'changed', text(now))
  redis.call('XADD', JOURNAL, 'MAXLEN', '~', MAX_STEPS, text(room.generation) .. '-' .. text(room.seq), 'at', text(now), ...)
end

local function waiting_count()
  return redis.call('ZCARD', QUEUE)
end

local function active_count()
  return redis.call('ZCARD', ACTIVE)
end

local function has_room()
  return room.paused == 0 and now >= room.opens and active_count() < room.threshold
end

local function slot_of(user)
  local kept = redis.call('HGET', SLOTS, user)
  if not kept then
    return nil
  end
  local id, order, since, known, given = string.match(kept, '^([^ ]+) (%d+) (%d+) (%d) (%d+)$')
  return { id = id, order = tonumber(order), since = tonumber(since), known = tonumber(known), given = tonumber(given) }
end

local function keep_slot(user, slot)
  local times = text(slot.since) .. ' ' .. slot.known .. ' ' .. text(slot.given)
  redis.call('HSET', SLOTS, user, slot.id .. ' ' .. text(slot.order) .. ' ' .. times)
end

local function forget(user)
  redis.call('ZREM', QUEUE, user)
  redis.call('ZREM', SEEN, user)
  redis.call('ZREM', ACTIVE, user)
  redis.call('HDEL', SLOTS, user)
end

-- A place is good for one slot, which has ended, or was given up: then `given` is when.
local function spend(user, slot)
  if not room.spent or now - room.spent >= SPENT_KEPT then
    redis.call('DEL', SPENT_BEFORE)
    if redis.call('EXISTS', SPENT) == 1 then
      redis.call('RENAME', SPENT, SPENT_BEFORE)
    end
    room.spent = now
    redis.call('HSET', ROOM, 'spent', text(now))
  end
  local _, _, furthest = string.find(redis.call('HGET', SPENT, user) or '', '(%d+)$')
  furthest = math.max(tonumber(furthest) or 0, slot.order)
  redis.call('HSET', SPENT, user, text(slot.order) .. ' ' .. text(slot.given) .. ' ' .. text(furthest))
end

-- As `Turns::cover` in spent.rs has it. `turns`: as in SPENT. Older versions kept one place alone.
local function covers(turns, order, since, is_ticket)
  local last, given, furthest = string.match(turns or '', '^(%d+) ?(%d*) ?(%d*)$')
  if not last then
    return false
  end
  if given == '' then
    return order <= tonumber(last)
  end
  last, given = tonumber(last), tonumber(given)
  -- As `spent::PASS_PRECISION`.
  since = is_ticket and since or since + 1000000
  return order == last or order == tonumber(furthest) or since <= given and (is_ticket or order < last)
end

local function gone(user, why)
  local slot = slot_of(user)
  if slot then
    spend(user, slot)
  elseif why == 'left' then
    -- Leaving gives the place up, as `Hall::apply` has it.
    local order = redis.call('ZSCORE', QUEUE, user)
    if order then
      spend(user, { order = tonumber(order), given = now })
    end
  end
  forget(user)
  note('kind', 'gone', 'user', user, 'why', why)
end

-- One more in this minute; the minute before keeps its count.
local function count_admission()
  local minute = math.floor(now / 60000000)
  if minute ~= room.minute then
    room.before = minute == room.minute + 1 and room.current or 0
    room.current = 0
    room.minute = minute
  end
  room.current = room.current + 1
  room.admitted = (room.admitted or 0) + 1
  if room.first == 0 then
    room.first = now
  end
  redis.call('HSET', ROOM, 'minute', text(minute), 'current', room.current, 'before', room.before, 'first', text(room.first),
    'admitted', room.admitted)
end

-- `source`: where the place of somebody who did not wait is from.
local function admit(user, order, id, idle, source)
  redis.call('ZREM', QUEUE, user)
  redis.call('ZREM', SEEN, user)
  redis.call('ZADD', ACTIVE, text(here + idle), user)
  keep_slot(user, { id = id, order = order, since = here, known = 0, given = now })
  note('kind', 'admitted', 'user', user, 'order', text(order), 'slot', id, 'source', source or '')
  count_admission()
end

-- The answer: how somebody stands, then the room.
local function answer(standing, order, ahead, slot, ends)
  slot = slot or { id = '', given = 0, known = 0 }
  return {
    standing, order or 0, ahead or 0, slot.id, slot.given, ends and ends + away or 0, slot.known,
    waiting_count(), active_count(), room.threshold, room.paused, room.epoch,
    room.first, room.minute, room.current, room.before, room.arrived or 0, room.admitted or 0,
    now, room.generation, room.seq,
  }
end

local function standing(user)
  local slot = slot_of(user)
  if slot then
    return answer(INSIDE, slot.order, 0, slot, tonumber(redis.call('ZSCORE', ACTIVE, user)))
  end
  local rank = redis.call('ZRANK', QUEUE, user)
  if rank then
    return answer(WAITING, tonumber(redis.call('ZSCORE', QUEUE, user)), rank)
  end
  return answer(ABSENT)
end

-- A sign of life. True when somebody waits or is in.
local function see(user, idle, total)
  local slot = slot_of(user)
  if slot then
    local ends = tonumber(redis.call('ZSCORE', ACTIVE, user))
    if not ends or ends <= here then
      gone(user, 'expired')
      return false
    end
    redis.call('ZADD', ACTIVE, text(math.min(here + idle, slot.since + total)), user)
    return true
  end
  if redis.call('ZSCORE', QUEUE, user) then
    redis.call('ZADD', SEEN, text(here), user)
    return true
  end
  return false
end

if not room.generation then
  return { UNKNOWN }
end
