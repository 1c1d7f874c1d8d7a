-- Schema version 18: indexes of the lists of executions and tasks with filters, and a count of commits. Never edited.
--
-- Each begins with what selects a part of a list, and ends with the order of the list. Lists of several parts, such as those of all
-- owners, are merged (read/merge.rs): without indexes by time alone, which each step would write as well.

CREATE INDEX executions_of_programs ON executions (owner, status, started_at, id) WHERE kind = 'program';
DROP INDEX executions_by_name;
CREATE INDEX executions_by_name ON executions (owner, name, started_at, id) WHERE name IS NOT NULL;

-- That of the execution, which never changes.
ALTER TABLE program_runs ADD COLUMN started_at INTEGER NOT NULL DEFAULT 0;
UPDATE program_runs SET started_at = (SELECT started_at FROM executions WHERE executions.id = program_runs.execution);
DROP INDEX program_runs_by_program;
CREATE INDEX program_runs_by_program ON program_runs (program, started_at, execution);
DROP INDEX program_runs_by_owner;

DROP INDEX tasks_pending_by_time;
CREATE INDEX tasks_ended ON tasks (owner, outcome, created_at, id) WHERE ended_at IS NOT NULL;

-- The count of commits (`commit_count.rs`), as a row of a table that nearly every commit writes.
INSERT INTO owners VALUES ('(commits)', 0);
