-- The step from schema version 20 to 21: tasks become items; limits and crashes of programs become columns; programs
-- get schedules; executions, keys and lines of the audit log are counted by the program. The statements that create tables and indexes are those of schema.sql.

ALTER TABLE sessions ADD COLUMN node BLOB;
ALTER TABLE idempotency_keys ADD COLUMN holder BLOB;
ALTER TABLE executions ADD COLUMN wake_at INTEGER;
ALTER TABLE executions ADD COLUMN spent TEXT;
ALTER TABLE executions ADD COLUMN exits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN kills INTEGER NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN inbox INTEGER NOT NULL DEFAULT 0;
CREATE INDEX executions_by_wake ON executions (wake_at, id) WHERE wake_at IS NOT NULL;

CREATE TABLE items (
    execution   BLOB    NOT NULL REFERENCES executions (id),
    -- Counts up in its execution. Of a pause (`CC`) it is the number of its checkpoint, of a pending item a number behind 2^40.
    item        INTEGER NOT NULL,
    id          BLOB    NOT NULL CHECK (length(id) = 16),
    -- `question`, `timer`, `event`.
    kind        TEXT    NOT NULL,
    owner       TEXT    NOT NULL,
    -- Of an event.
    name        TEXT,
    prompt      TEXT    NOT NULL,
    schema      TEXT,
    attempts    INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    due_at      INTEGER,
    ended_at    INTEGER,
    answer      TEXT,
    -- The order of the answers to its execution.
    answer_seq  INTEGER,
    -- The checkpoint whose state has the answer; not of a pause, whose answer is in the next one.
    taken_at    INTEGER,
    -- The checkpoint at which it was stored first.
    checkpoint  INTEGER NOT NULL,
    retries     INTEGER,
    fallback    TEXT,
    outcome     TEXT,
    -- When answers came that did not fit.
    first_attempt_at INTEGER,
    last_attempt_at  INTEGER,
    PRIMARY KEY (execution, item)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX items_by_id ON items (id);
CREATE INDEX items_ended ON items (owner, outcome, created_at, id) WHERE ended_at IS NOT NULL AND kind = 'question';
-- Items that have ended and that their execution has not used, or never will. A pause writes nothing here.
CREATE INDEX items_untaken ON items (execution, answer_seq)
    WHERE ended_at IS NOT NULL AND taken_at IS NULL AND item >= 1099511627776;
-- Used items that are no tasks: they go with the last checkpoint at which they were pending.
CREATE INDEX items_taken ON items (execution, taken_at) WHERE taken_at IS NOT NULL AND kind <> 'question';

-- The items that have not ended, so that no query for these passes ended ones: a row is deleted with the end of its item.
CREATE TABLE open_items (
    execution   BLOB    NOT NULL,
    item        INTEGER NOT NULL,
    id          BLOB    NOT NULL CHECK (length(id) = 16),
    kind        TEXT    NOT NULL,
    -- Of an event.
    name        TEXT,
    owner       TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    due_at      INTEGER,
    PRIMARY KEY (execution, item)
) STRICT, WITHOUT ROWID;
CREATE INDEX open_items_by_owner ON open_items (owner, created_at, id) WHERE kind = 'question';
-- For the time at which an execution wakes next, when its earliest item has ended.
CREATE INDEX open_items_by_due ON open_items (execution, due_at) WHERE due_at IS NOT NULL;
-- For an event that goes to all executions of an owner that wait for it.
CREATE INDEX open_items_of_events ON open_items (owner, name, execution) WHERE kind = 'event';

-- Events that came for an execution and that it has not used, in their order. At most 1 000 of an execution.
CREATE TABLE mailbox (
    execution   BLOB    NOT NULL REFERENCES executions (id),
    seq         INTEGER NOT NULL,
    name        TEXT    NOT NULL,
    event       TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (execution, seq)
) STRICT, WITHOUT ROWID;

-- Times at which programs are started.
CREATE TABLE schedules (
    id          BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    owner       TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    -- Counts its changes: two that were decided for the same state are not both made.
    revision    INTEGER NOT NULL,
    -- The next time, without its jitter; NULL: it is paused.
    next_at     INTEGER,
    -- When it is due: 0 at once. NULL: never, as long as it is paused.
    due_at      INTEGER,
    -- The execution for whose end a queued time waits.
    waits_for   BLOB,
    -- `ScheduleSpec` and `ScheduleState` as JSON; no statement in here reads a part of them.
    spec        TEXT    NOT NULL,
    state       TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX schedules_name ON schedules (owner, name);
CREATE INDEX schedules_by_owner ON schedules (owner, created_at, id);
CREATE INDEX schedules_by_time ON schedules (created_at, id);
-- One entry for each that is not paused; nothing is read while none is due.
CREATE INDEX schedules_by_due ON schedules (due_at, id) WHERE due_at IS NOT NULL;
-- For the end of an execution. Few or no rows have it.
CREATE INDEX schedules_by_waiting ON schedules (waits_for) WHERE waits_for IS NOT NULL;

-- An execution had one task for each checkpoint; a second one, which only a damaged or forged import can have left, gets a number that
-- no checkpoint has. An answer is what its execution got, by itself or from a client: the withdrawn ones got none.
INSERT INTO items (execution, item, id, kind, owner, prompt, schema, attempts, created_at, due_at, ended_at, answer,
        answer_seq, checkpoint, retries, fallback, outcome, first_attempt_at, last_attempt_at)
    SELECT execution,
        checkpoint + (row_number() OVER (PARTITION BY execution, checkpoint ORDER BY created_at, id) - 1) * 1099511627776,
        id, 'question', owner, prompt, schema, attempts, created_at, deadline, ended_at, answer,
        CASE WHEN outcome <> 'withdrawn' THEN count(*) FILTER (WHERE outcome <> 'withdrawn')
            OVER (PARTITION BY execution ORDER BY checkpoint, created_at, id ROWS UNBOUNDED PRECEDING) END,
        checkpoint, retries, fallback, outcome, first_attempt_at, last_attempt_at
    FROM tasks;
INSERT INTO open_items SELECT execution, item, id, kind, NULL, owner, created_at, due_at FROM items WHERE ended_at IS NULL;
UPDATE executions SET inbox = answers.last
    FROM (SELECT execution, max(answer_seq) AS last FROM items WHERE answer_seq IS NOT NULL GROUP BY execution) AS answers
    WHERE id = answers.execution;
UPDATE executions SET wake_at = due.first
    FROM (SELECT execution, min(due_at) AS first FROM open_items WHERE due_at IS NOT NULL GROUP BY execution) AS due
    WHERE id = due.execution AND kind = 'program';
-- With its indexes and triggers.
DROP TABLE tasks;

DROP TRIGGER executions_inserted;
DROP TRIGGER executions_updated;
DROP TRIGGER executions_deleted;
DROP TRIGGER idempotency_keys_inserted;
DROP TRIGGER idempotency_keys_updated;
DROP TRIGGER idempotency_keys_deleted;
DROP TRIGGER owners_of_lines;
DROP TRIGGER owners_of_deleted_lines;
DROP TRIGGER checkpoints_inserted;
DROP TRIGGER checkpoints_deleted;
DROP TRIGGER state_pages_inserted;
DROP TRIGGER state_pages_deleted;
