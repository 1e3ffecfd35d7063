//! One Redis client for a single node and a Cluster: scripts, deadlines, breaker.
