-- Acquires the lock for opening a room, unless the room is open. Another process may have opened
-- it since the caller looked; a generation begun in the database then would be one that Redis does
-- not have.
-- KEYS  1: {<event>}:room   2: {<event>}:opening   3: {<event>}:active   4: {<event>}:slots
-- ARGV  1: id of the caller   2: lifetime of the lock, in milliseconds
-- reply 1 when the caller got the lock, 2 when the room is open, 0 when another process has it
-- cost  O(1). O(n) when an opener crashed after it had restored n slots: they are deleted, because
--       some may have ended since
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 2
end
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then
  redis.call('DEL', KEYS[3], KEYS[4])
  return 1
end
return 0
