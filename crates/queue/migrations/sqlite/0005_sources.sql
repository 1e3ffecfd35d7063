-- Where the place of whoever came is from. Nothing: it is from before this was noted, or the place was in line already.
alter table journal add column source text check (source = 'new' or source = 'ticket' or source = 'pass');
