-- Deletes a generation of a room that is older than the database: Redis came back with old data.
-- ARGV  1: generation
-- reply 1 when the room was deleted, else 0
-- cost  O(n)
if room.generation ~= tonumber(ARGV[1]) then
  return { 0 }
end
redis.call('DEL', QUEUE, ACTIVE, SEEN, SLOTS, ROOM, JOURNAL, SPENT, SPENT_BEFORE)
return { 1 }
