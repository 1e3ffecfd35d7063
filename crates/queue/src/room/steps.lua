-- Deletes the steps that the database has, then returns the next ones.
-- KEYS  1: {<event>}:journal
-- ARGV  1: the first step that the database does not have, as generation-number   2: most steps
-- reply list of { id, { field, value, … } }
-- cost  O(k)
redis.call('XTRIM', KEYS[1], 'MINID', ARGV[1])
return redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', ARGV[2])
