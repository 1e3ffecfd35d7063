-- Finds the dearest hash among imported accounts, so that comparing a password costs the same for every address. A bcrypt hash is
-- `$2b$10$…`: a 2 in the second place, and the cost in the fifth and sixth.
create index accounts_imported on accounts (substr(password_hash, 5, 2)) where substr(password_hash, 2, 1) = '2';
