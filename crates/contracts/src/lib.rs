//! One module per domain: trait, requests, replies, errors, events.
