-- Schema version 15: what a repetition of an execution in another session needs (`RepeatFacts`). Never edited, as schema.sql.
--
-- 256: unknown, for executions of before.
ALTER TABLE executions ADD COLUMN facts INTEGER NOT NULL DEFAULT 256;
