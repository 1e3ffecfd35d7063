-- Prelude of every script of a room: keys, time, and functions that record steps.
-- KEYS  1: {<event>}:queue    waiting users, by order key
--       2: {<event>}:active   users with a slot, by the microsecond of room time at which it ends
--       3: {<event>}:seen     waiting users, by their last activity in room time
--       4: {<event>}:slots    per user with a slot: slot id, order key, start in room time, 1 once
--          it is in the database, start in Redis's time
--       5: {<event>}:room     threshold, pause, epoch, numbering, admission rate, counts of joins
--          and admissions, total time away
--       6: {<event>}:journal  steps that are not in the database yet
--       8: {<event>}:spent    per user with an ended turn: order key of the last one, its time, and
--          the highest order key used
--       9: {<event>}:spent-before   the same of the day before
local QUEUE, ACTIVE, SEEN, SLOTS, ROOM, JOURNAL = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local SPENT, SPENT_BEFORE = KEYS[8], KEYS[9]
local ABSENT, WAITING, INSIDE, FULL, UNKNOWN, UNSURE = 0, 1, 2, 3, 4, 5
-- Longer than any outage of the database should last at full speed. Beyond it the oldest steps are
-- lost, and `urr queue verify` reports a gap.
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

-- Room time, as in `presence.rs`. Users cannot be active while no script runs, so a gap counts only
-- up to this limit. If Redis's clock goes back, that time counts twice.
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

-- Records a turn: a slot that has ended, or a position that was given up (then `given` is when).
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

-- As `Turns::cover` in spent.rs. `turns` is as in SPENT; older versions stored one order key.
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
    -- Leaving gives up the position, as in `Hall::apply`.
    local order = redis.call('ZSCORE', QUEUE, user)
    if order then
      spend(user, { order = tonumber(order), given = now })
    end
  end
  forget(user)
  note('kind', 'gone', 'user', user, 'why', why)
end

-- Counts one admission in the current minute; the count of the previous minute is kept.
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

-- `source`: where the position of a user who did not wait came from.
local function admit(user, order, id, idle, source)
  redis.call('ZREM', QUEUE, user)
  redis.call('ZREM', SEEN, user)
  redis.call('ZADD', ACTIVE, text(here + idle), user)
  keep_slot(user, { id = id, order = order, since = here, known = 0, given = now })
  note('kind', 'admitted', 'user', user, 'order', text(order), 'slot', id, 'source', source or '')
  count_admission()
end

-- The reply: the user's standing, then the room.
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

-- Records activity. Returns true when the user waits or has a slot.
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
