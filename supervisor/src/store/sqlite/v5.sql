-- Schema version 5. Which execution a client means when it names none.

CREATE TABLE current_executions (
    owner       TEXT    NOT NULL,
    client      TEXT    NOT NULL,
    execution   BLOB    NOT NULL REFERENCES executions (id),
    at          INTEGER NOT NULL,
    PRIMARY KEY (owner, client)
) STRICT, WITHOUT ROWID;
CREATE INDEX current_executions_by_execution ON current_executions (execution);
CREATE INDEX current_executions_by_time ON current_executions (owner, at, client);
