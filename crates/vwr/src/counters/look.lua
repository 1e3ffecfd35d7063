-- Returns the state of a room.
-- reply 0, then the room
-- cost  O(1)
return answer(0)
