//! Black box: the real binary, several processes, kill -9, power loss.
