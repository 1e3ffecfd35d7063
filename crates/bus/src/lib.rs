//! Publish and consume: in process or Kafka; relay, consumer groups, retries, dead letters.
