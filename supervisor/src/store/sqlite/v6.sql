-- Schema version 6. A checkpoint knows which pages it wrote, so that forgetting old versions costs what was written and
-- not the state: sorted page numbers, each as the difference to the one before, in LEB128. NULL where nobody knows, and
-- where it is never asked (the first of an execution).

ALTER TABLE checkpoints ADD COLUMN pages BLOB;

-- Found without looking at what others have: sessions by their names, versions of a program by their sources and those that
-- nobody runs, lists of one owner's executions, and the sessions that a start of the supervisor looks at.

CREATE INDEX sessions_by_name ON sessions (owner, name, created_at, id) WHERE name IS NOT NULL;
CREATE INDEX sessions_by_name_of_all ON sessions (name, created_at, id) WHERE name IS NOT NULL;
CREATE INDEX program_versions_by_source ON program_versions (program, source_hash, version);
ALTER TABLE program_runs ADD COLUMN owner TEXT NOT NULL DEFAULT '';
UPDATE program_runs SET owner =
    (SELECT executions.owner FROM executions WHERE executions.id = program_runs.execution);
CREATE INDEX program_runs_by_owner ON program_runs (owner, execution);
CREATE INDEX program_runs_by_version ON program_runs (program, version);
CREATE INDEX sessions_live ON sessions (id) WHERE durable = 0 AND status IN ('starting', 'ready');
