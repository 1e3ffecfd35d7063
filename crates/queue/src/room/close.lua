-- Ends a room's life in good order: nobody is in it, nothing has happened for long, and the database has every step.
-- ARGV  1: for how long nothing must have happened, in microseconds   2: generation
-- reply 1 when it is gone, else 0
-- cost  O(1)
local idle = now - (room.changed or room.last) >= tonumber(ARGV[1])
local done = waiting_count() == 0 and active_count() == 0 and redis.call('XLEN', JOURNAL) == 0
if idle and done and room.generation == tonumber(ARGV[2]) then
  redis.call('DEL', QUEUE, ACTIVE, SEEN, SLOTS, ROOM, JOURNAL, SPENT, SPENT_BEFORE)
  return { 1 }
end
return { 0 }
