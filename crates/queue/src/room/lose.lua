-- Gives a life of a room up which the database knows better: Redis has come back with what it was a while ago.
-- ARGV  1: generation
-- reply 1 when it is gone, else 0
-- cost  O(n)
if room.generation ~= tonumber(ARGV[1]) then
  return { 0 }
end
redis.call('DEL', QUEUE, ACTIVE, SEEN, SLOTS, ROOM, JOURNAL, SPENT, SPENT_BEFORE)
return { 1 }
