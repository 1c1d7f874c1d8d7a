-- Schema version 2. What `require` and the global scope call a library. No verb of version 1 installed any.

ALTER TABLE libraries ADD COLUMN id TEXT NOT NULL DEFAULT '';
ALTER TABLE libraries ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE libraries ADD COLUMN global TEXT;
