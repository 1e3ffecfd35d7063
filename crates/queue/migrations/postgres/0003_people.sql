-- What became of one user, for rooms whose store has lost it: which places they used, and whether they are in.
create index journal_of_user on journal (event_id, user_id) where user_id is not null and kind <> 'joined';
