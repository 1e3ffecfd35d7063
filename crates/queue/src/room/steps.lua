-- Steps that are on their way to the database: forgets those that arrived, then gives the next.
-- KEYS  1: {<event>}:journal
-- ARGV  1: the first step that has not arrived, as generation-number   2: how many at most
-- reply list of { id, { field, value, … } }
-- cost  O(k)
redis.call('XTRIM', KEYS[1], 'MINID', ARGV[1])
return redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', ARGV[2])
