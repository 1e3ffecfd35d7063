-- The relay finds the first of each key among the oldest waiting rows by itself: an index less to keep with every message.
drop index outbox_waiting_key;
