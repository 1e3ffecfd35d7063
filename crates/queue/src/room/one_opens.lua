-- Takes the right to open a room, unless it is open: somebody may have opened it since whoever asks found that it was not, and a life
-- that begins in the database then is one that Redis does not have.
-- KEYS  1: {<event>}:room   2: {<event>}:opening
-- ARGV  1: who asks   2: how long the right lasts, in milliseconds
-- reply 1 when they have it, 2 when the room is open, 0 when another has it
-- cost  O(1)
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 2
end
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 1
end
return 0
