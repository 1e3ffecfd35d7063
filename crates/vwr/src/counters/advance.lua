-- Lets on as many as are due, if that is the worker's to do.
-- ARGV  1: the worker   2: the term it was told last, or 0   3: how long its term lasts without a word of it, in microseconds
--       4: for how long it is made up if nobody did this, in microseconds   5: a term that ends more than this after it would is from
--       before the clock went back, in microseconds
-- reply the term; -4 if another worker does it
-- cost  O(1)
local ours = room.leader == ARGV[1] and room.term == tonumber(ARGV[2])
if not ours then
  local left = room['until'] - now
  if room.leader ~= '' and left > 0 and left <= ARGV[3] + ARGV[5] then
    return answer(THEIRS)
  end
  room.term = room.term + 1
end
room.leader = ARGV[1]
room['until'] = now + tonumber(ARGV[3])
-- The same arithmetic as `rules::advance`. Below 2^53, so exact.
if room.active == 0 or room.paused == 1 or room.rate == 0 or room.serving >= room.tail then
  room.moved = now
else
  room.moved = math.min(room.moved, now)
  local elapsed = math.min(now - room.moved, tonumber(ARGV[4]))
  local steps = math.floor(elapsed * room.rate / 1000000)
  if steps > 0 then
    room.serving = math.min(room.serving + steps, room.tail)
    room.moved = now
    if room.serving < room.tail then
      room.moved = now - (elapsed - math.ceil(steps * 1000000 / room.rate))
    end
  end
end
keep('leader', 'term', 'until', 'serving', 'moved')
return answer(room.term)
