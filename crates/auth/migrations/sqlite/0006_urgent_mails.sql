-- Finds mails of one kind among those that wait, so that a flood of others does not delay a new password.
create index mails_waiting_of_kind on mails (kind, next_at) where state = 'waiting';
