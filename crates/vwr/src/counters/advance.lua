-- Advances the serving counter by what is due, if the worker holds the lease or can take it.
-- ARGV  1: id of the worker   2: the lease term it got last, or 0
--       3: lifetime of the lease   4: longest gap that is made up
--       5: a lease that ends later than its lifetime plus this is from before the clock went back
--       (3 to 5 in microseconds)
-- reply the term; -4 if another worker holds the lease
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
-- As `rules::advance`. Exact, because all numbers are below 2^53.
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
