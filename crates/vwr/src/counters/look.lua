-- Tells how a room is.
-- reply 0
-- cost  O(1)
return answer(0)
