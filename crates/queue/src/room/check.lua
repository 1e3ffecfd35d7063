-- Joins, resumes or finds out, whichever is due.
-- ARGV  1: user   2: id of the slot, if one is given
--       3, 4: how long a slot lasts without a sign of life, and at all, in microseconds   5: how many may wait
--       6: the turns that the database knows of, as in SPENT, '-' for none, '' when it was not asked
--       7: 1 when there is anything to be let in to   8: 1 when there is a new place for whoever has no promise that holds
--       9…: order key of each promised place, the epoch of a ticket or '' of a pass, and since when; the first that holds counts
-- reply { as `answer` in room.lua, then for each promise 0 when it holds, 1 when the line was cleared since, 2 when it was used };
--       { 5 } when the database has to be asked first which places were used, because Redis has lost what it knew
-- cost  O(log n)
local user, idle, total = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local HOLDS, VOID, USED = 0, 1, 2
local is_here = see(user, idle, total)
-- Whoever is in meanwhile has not used their place up, whatever the database knows of it.
local turns = { redis.call('HGET', SPENT, user), redis.call('HGET', SPENT_BEFORE, user), not is_here and ARGV[6] }
local flaws, order, source = {}, nil, nil
for place = 9, #ARGV, 3 do
  local promised, epoch, since, flaw = tonumber(ARGV[place]), ARGV[place + 1], tonumber(ARGV[place + 2]), HOLDS
  local is_ticket, is_used = epoch ~= '', false
  for turn = 1, 3 do
    is_used = is_used or covers(turns[turn], promised, since, is_ticket)
  end
  if is_ticket and tonumber(epoch) ~= room.epoch then
    flaw = VOID
  elseif is_used then
    flaw = USED
  elseif not order then
    order, source = promised, is_ticket and 'ticket' or 'pass'
  end
  flaws[#flaws + 1] = flaw
end
if is_here then
  return { standing(user), unpack(flaws) }
end
if order and room.lost == 1 and ARGV[6] == '' then
  return { UNSURE }
end
if not order then
  if ARGV[8] ~= '1' then
    return { answer(ABSENT), unpack(flaws) }
  end
  order, source = math.max(room.last + 1, now), 'new'
end
local straight_in = ARGV[7] == '1' and waiting_count() == 0 and has_room()
-- A ticket is a place that was given, and is good although others have come since, as `Hall::check` has it.
if not straight_in and source ~= 'ticket' and waiting_count() >= tonumber(ARGV[5]) then
  return { answer(FULL), unpack(flaws) }
end
-- As `Hall::note_place`.
room.last = math.max(room.last, source == 'new' and order or math.min(order, now))
room.arrived = (room.arrived or 0) + 1
redis.call('HSET', ROOM, 'last', text(room.last), 'arrived', room.arrived)
if straight_in then
  admit(user, order, ARGV[2], math.min(idle, total), source)
else
  redis.call('ZADD', QUEUE, text(order), user)
  redis.call('ZADD', SEEN, text(here), user)
  note('kind', 'joined', 'user', user, 'order', text(order), 'source', source)
end
return { standing(user), unpack(flaws) }
