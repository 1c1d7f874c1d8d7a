-- Schema version 14: the events of sessions' lives. Never edited, as schema.sql.

-- Written by the triggers below, in the transaction of the change itself. They count nothing for their owner: at most three of them
-- are in the 1 KiB of each execution and of each task. Deleted with the executions that they are about, the newest one with the
-- session, so that a number is never used twice.
CREATE TABLE session_events (
    session     BLOB    NOT NULL,
    seq         INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    -- `execution_ran` is two events, an execution whose start and end were committed together: seq is the number of the second.
    type        TEXT    NOT NULL,
    -- When such an execution was started.
    began_at    INTEGER,
    -- An execution, or for `created` and `forked` another session.
    subject     BLOB,
    detail      TEXT,
    PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER session_events_of_created AFTER INSERT ON sessions WHEN NEW.durable = 0 BEGIN
    INSERT INTO session_events SELECT NEW.id, 1, NEW.created_at, 'created', NULL,
        CASE WHEN json_valid(NEW.runtime_meta)
            THEN unhex(replace(json_extract(NEW.runtime_meta, '$.forked_from'), '-', '')) END, NULL;
    INSERT INTO session_events SELECT parent.session, max(parent.seq) + 1, NEW.created_at, 'forked', NULL, NEW.id, NULL
        FROM session_events AS parent
        WHERE parent.session = (SELECT subject FROM session_events WHERE session = NEW.id AND seq = 1)
        GROUP BY parent.session;
END;
CREATE TRIGGER session_events_of_status AFTER UPDATE OF status ON sessions
WHEN NEW.status <> OLD.status AND NEW.durable = 0 BEGIN
    INSERT INTO session_events SELECT NEW.id,
        coalesce((SELECT max(seq) FROM session_events WHERE session = NEW.id), 0) + 1,
        coalesce(NEW.closed_at, CAST(unixepoch('subsec') * 1000 AS INTEGER)), NEW.status, NULL, NULL,
        NEW.close_reason || coalesce(': ' || NEW.last_error, '');
END;
CREATE TRIGGER session_events_of_started AFTER INSERT ON executions WHEN NEW.kind <> 'program' AND NEW.ended_at IS NULL BEGIN
    INSERT INTO session_events SELECT NEW.session,
        coalesce((SELECT max(seq) FROM session_events WHERE session = NEW.session), 0) + 1,
        NEW.started_at, 'execution_started', NULL, NEW.id, NULL;
END;
CREATE TRIGGER session_events_of_ran AFTER INSERT ON executions WHEN NEW.kind <> 'program' AND NEW.ended_at IS NOT NULL BEGIN
    INSERT INTO session_events SELECT NEW.session,
        coalesce((SELECT max(seq) FROM session_events WHERE session = NEW.session), 0) + 2,
        NEW.ended_at, 'execution_ran', NEW.started_at, NEW.id, NEW.status;
END;
CREATE TRIGGER session_events_of_execution AFTER UPDATE OF status ON executions
WHEN NEW.status <> OLD.status AND NEW.kind <> 'program' BEGIN
    INSERT INTO session_events SELECT NEW.session,
        coalesce((SELECT max(seq) FROM session_events WHERE session = NEW.session), 0) + 1,
        coalesce(NEW.ended_at, CAST(unixepoch('subsec') * 1000 AS INTEGER)),
        CASE NEW.status WHEN 'running' THEN 'execution_resumed' WHEN 'waiting' THEN 'execution_waiting'
            ELSE 'execution_ended' END,
        NULL, NEW.id, CASE WHEN NEW.ended_at IS NOT NULL THEN NEW.status END;
END;

-- An execution has up to three events, and more only with tasks.
CREATE TRIGGER session_events_of_deleted_execution AFTER DELETE ON executions WHEN OLD.kind <> 'program' BEGIN
    DELETE FROM session_events WHERE session = OLD.session AND at <= OLD.ended_at
        AND seq < (SELECT max(seq) FROM session_events WHERE session = OLD.session)
        AND seq <= (SELECT max(seq) FROM (SELECT seq FROM session_events WHERE session = OLD.session ORDER BY seq LIMIT 8));
END;
CREATE TRIGGER session_events_of_deleted_session AFTER DELETE ON sessions WHEN OLD.durable = 0 BEGIN
    DELETE FROM session_events WHERE session = OLD.id;
END;

-- Of sessions that were created before, only this is known; their executions are not numbered again.
INSERT INTO session_events SELECT id, 1, created_at, 'created', NULL, NULL, NULL FROM sessions WHERE durable = 0;
INSERT INTO session_events SELECT id, 2, closed_at, status, NULL, NULL, close_reason || coalesce(': ' || last_error, '')
    FROM sessions WHERE durable = 0 AND closed_at IS NOT NULL;
