-- Closes a room that is empty and idle and whose steps are all in the database.
-- ARGV  1: required idle time, in microseconds   2: generation
-- reply 1 when the room was deleted, else 0
-- cost  O(1)
local idle = now - (room.changed or room.last) >= tonumber(ARGV[1])
local done = waiting_count() == 0 and active_count() == 0 and redis.call('XLEN', JOURNAL) == 0
if idle and done and room.generation == tonumber(ARGV[2]) then
  redis.call('DEL', QUEUE, ACTIVE, SEEN, SLOTS, ROOM, JOURNAL, SPENT, SPENT_BEFORE)
  return { 1 }
end
return { 0 }
