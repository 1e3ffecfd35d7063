-- Where lines were cleared, which a journal of millions of steps has a handful of: asked for each slot while a room's store is away.
create index journal_of_clearings on journal (event_id) where kind = 'cleared';
