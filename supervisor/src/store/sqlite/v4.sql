-- Schema version 4. Questions know how they end, where they were asked, and when answers came that did not fit; what
-- has to go on after a start of the supervisor is found without looking at all that waits.

ALTER TABLE tasks ADD COLUMN checkpoint INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN retries INTEGER;
ALTER TABLE tasks ADD COLUMN fallback TEXT;
ALTER TABLE tasks ADD COLUMN outcome TEXT;
ALTER TABLE tasks ADD COLUMN first_attempt_at INTEGER;
ALTER TABLE tasks ADD COLUMN last_attempt_at INTEGER;
DROP INDEX tasks_by_execution;
CREATE INDEX tasks_by_execution ON tasks (execution, checkpoint);
CREATE INDEX tasks_by_deadline ON tasks (deadline, id) WHERE ended_at IS NULL AND deadline IS NOT NULL;
CREATE INDEX executions_running ON executions (id) WHERE kind = 'program' AND status = 'running';
CREATE INDEX program_runs_by_program ON program_runs (program, execution);
