-- Schema version 8. Sessions of scripts are listed without a look at those of durable programs, which may be many more, and
-- the other way round.

DROP INDEX sessions_by_time;
DROP INDEX sessions_by_owner;
DROP INDEX sessions_by_status;
CREATE INDEX sessions_by_time ON sessions (durable, created_at, id);
CREATE INDEX sessions_by_owner ON sessions (owner, durable, created_at, id);
CREATE INDEX sessions_by_status ON sessions (status, durable, created_at, id);
