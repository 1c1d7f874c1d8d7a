-- Schema version 6. A checkpoint knows which pages it wrote, so that forgetting old versions costs what was written and
-- not the state: sorted page numbers, each as the difference to the one before, in LEB128. NULL where nobody knows, and
-- where it is never asked (the first of an execution).

ALTER TABLE checkpoints ADD COLUMN pages BLOB;

-- Sessions are found by their names, and versions of a program by their sources, without looking at others.

CREATE INDEX sessions_by_name ON sessions (owner, name, created_at, id) WHERE name IS NOT NULL;
CREATE INDEX sessions_by_name_of_all ON sessions (name, created_at, id) WHERE name IS NOT NULL;
CREATE INDEX program_versions_by_source ON program_versions (program, source_hash, version);
