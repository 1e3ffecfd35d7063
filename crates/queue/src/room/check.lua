-- Joins, resumes or finds out, whichever is due.
-- ARGV  1: user   2: promised order key or ''   3: the epoch it was promised in or ''   4: id of the slot, if one is given
--       5, 6: how long a slot lasts without a sign of life, and at all, in microseconds   7: how many may wait
--       8: 1 when the database does not know the promised place as used   9: 1 when there is anything to be let in to
-- reply as `answer` in room.lua; { 5 } when the database has to be asked about the place first, because Redis has lost what it knew
-- cost  O(log n)
local user, idle, total = ARGV[1], tonumber(ARGV[5]), tonumber(ARGV[6])
if see(user, idle, total) then
  return standing(user)
end
local order, source = tonumber(ARGV[2]), ARGV[3] == '' and 'pass' or 'ticket'
if order and ARGV[3] ~= '' and tonumber(ARGV[3]) ~= room.epoch then
  order = nil
end
if order and is_spent(user, order) then
  order = nil
end
if order and room.lost == 1 and ARGV[8] ~= '1' then
  return { UNSURE }
end
if not order then
  order, source = math.max(room.last + 1, now), 'new'
end
local straight_in = ARGV[9] == '1' and waiting_count() == 0 and has_room()
-- A ticket is a place that was given; there are no more of them than places.
if not straight_in and source ~= 'ticket' and waiting_count() >= tonumber(ARGV[7]) then
  return answer(FULL)
end
-- As `Hall::note_place`.
room.last = math.max(room.last, source == 'new' and order or math.min(order, now))
room.arrived = (room.arrived or 0) + 1
redis.call('HSET', ROOM, 'last', text(room.last), 'arrived', room.arrived)
if straight_in then
  admit(user, order, ARGV[4], math.min(idle, total), source)
else
  redis.call('ZADD', QUEUE, text(order), user)
  redis.call('ZADD', SEEN, text(here), user)
  note('kind', 'joined', 'user', user, 'order', text(order), 'source', source)
end
return standing(user)
