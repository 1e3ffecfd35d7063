-- Admits a request unless the limit was already reached during the window that ends now.
-- KEYS  1: limit:{<class>:<who>}, the timestamps of recent admissions in microseconds, newest first, never more than the limit
-- ARGV  1: limit, at least 1   2: window in microseconds
-- reply 0 if admitted, otherwise microseconds to wait
-- cost  O(1): both ends of one list of at most limit entries; 11 bytes an entry
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local newest = tonumber(redis.call('LINDEX', KEYS[1], 0))
if newest and newest > now then
  if newest - now > window then
    -- The clock was set back by more than a window: the stored timestamps are useless.
    redis.call('DEL', KEYS[1])
  else
    -- After a failover the new primary's clock may be slightly behind. Use the newest timestamp until it catches up.
    now = newest
  end
end
local oldest = tonumber(redis.call('LINDEX', KEYS[1], limit - 1))
if oldest and oldest + window > now then
  return oldest + window - now
end
redis.call('LPUSH', KEYS[1], string.format('%.0f', now))
redis.call('LTRIM', KEYS[1], 0, limit - 1)
redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000))
return 0
