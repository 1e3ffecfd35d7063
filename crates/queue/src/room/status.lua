-- Returns the user's standing; counts as activity.
-- ARGV  1: user   2: slot idle timeout, in microseconds   3: slot lifetime, in microseconds
-- reply as `answer` in room.lua
-- cost  O(log n)
see(ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]))
return standing(ARGV[1])
