-- The setting that a room follows. Nothing: an operator has decided otherwise for it.
alter table rooms add column configured integer check (configured >= 0);
update rooms set configured = threshold
 where not exists (select 1 from journal where journal.event_id = rooms.event_id and journal.kind = 'threshold');
