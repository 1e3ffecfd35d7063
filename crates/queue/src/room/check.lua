-- Joins the line, resumes a position or returns the user's standing.
-- ARGV  1: user   2: id of the slot, if one is given
--       3: slot idle timeout, in microseconds   4: slot lifetime, in microseconds
--       5: most waiting users
--       6: the user's turns from the database, as in SPENT; '-' for none, '' when not read yet
--       7: 1 when the sale is on   8: 1 when the user may get a new position if no promise holds
--       9…: per promise: order key, epoch of the ticket or '' for a pass, and issue time (ticket)
--           or start of the Tier 1 wait (pass); the first that holds counts
-- reply { as `answer` in room.lua, then per promise: 0 holds, 1 line was cleared since, 2 used };
--       { 5 } when the caller must read ARGV 6 from the database, because Redis has lost that data
-- cost  O(log n)
local user, idle, total = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local HOLDS, VOID, USED = 0, 1, 2
local is_here = see(user, idle, total)
-- A user who has a slot has not used up its position yet, whatever the database says.
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
-- A ticket names a position that was given, so it holds even if the line is full (`Hall::check`).
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
