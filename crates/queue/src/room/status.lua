-- How somebody stands, which is a sign of life.
-- ARGV  1: user   2, 3: how long a slot lasts without a sign of life, and at all, in microseconds
-- reply as `answer` in room.lua
-- cost  O(log n)
see(ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]))
return standing(ARGV[1])
