-- Takes the right to open a room, unless it is open: somebody may have opened it since whoever asks found that it was not, and a life
-- that begins in the database then is one that Redis does not have.
-- KEYS  1: {<event>}:room   2: {<event>}:opening   3: {<event>}:active   4: {<event>}:slots
-- ARGV  1: who asks   2: how long the right lasts, in milliseconds
-- reply 1 when they have it, 2 when the room is open, 0 when another has it
-- cost  O(1), or O(n) where somebody died who had begun to open it and had told of n slots: some may have ended since
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 2
end
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then
  redis.call('DEL', KEYS[3], KEYS[4])
  return 1
end
return 0
