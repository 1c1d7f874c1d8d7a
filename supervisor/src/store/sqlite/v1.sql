-- Schema version 1. Ids are 16-byte UUIDs, times are milliseconds since the Unix epoch, JSON is text.
-- Parts of a row (events, capabilities, pages) belong to the owner of what they are part of.

CREATE TABLE templates (
    id          BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    owner       TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    engine      TEXT    NOT NULL,
    is_active   INTEGER NOT NULL,
    settings    TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX templates_name ON templates (owner, name) WHERE is_active = 1;
CREATE INDEX templates_by_name ON templates (name, created_at, id) WHERE is_active = 1;
CREATE INDEX templates_by_owner ON templates (owner, created_at, id) WHERE is_active = 1;
CREATE INDEX templates_by_time ON templates (created_at, id) WHERE is_active = 1;

CREATE TABLE template_modules (
    template    BLOB    NOT NULL REFERENCES templates (id),
    name        TEXT    NOT NULL,
    PRIMARY KEY (template, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE template_libraries (
    template    BLOB    NOT NULL REFERENCES templates (id),
    name        TEXT    NOT NULL,
    PRIMARY KEY (template, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE capabilities (
    id          BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    template    BLOB    NOT NULL REFERENCES templates (id),
    kind        TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    enabled     INTEGER NOT NULL,
    config      TEXT    NOT NULL,
    UNIQUE (template, kind, name)
) STRICT;

CREATE TABLE startup_files (
    id          BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    template    BLOB    NOT NULL REFERENCES templates (id),
    path        TEXT    NOT NULL,
    order_index INTEGER NOT NULL,
    mode        TEXT    NOT NULL,
    UNIQUE (template, path)
) STRICT;

CREATE TABLE libraries (
    name         TEXT    NOT NULL PRIMARY KEY,
    hash         BLOB    NOT NULL CHECK (length(hash) = 32),
    bytes        INTEGER NOT NULL,
    installed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Snapshots of templates, one row per distinct content.
CREATE TABLE policies (
    hash        BLOB    NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
    snapshot    TEXT    NOT NULL
) STRICT;

CREATE TABLE sessions (
    id              BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    owner           TEXT    NOT NULL,
    name            TEXT,
    template        BLOB    NOT NULL REFERENCES templates (id),
    policy          BLOB    NOT NULL REFERENCES policies (hash),
    durable         INTEGER NOT NULL,
    workspace_id    TEXT    NOT NULL,
    base_commit_oid TEXT    NOT NULL,
    worktree_path   TEXT    NOT NULL,
    status          TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    closed_at       INTEGER,
    last_error      TEXT,
    close_reason    TEXT,
    runtime_meta    TEXT    NOT NULL,
    worker_seq      INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_time ON sessions (created_at, id);
CREATE INDEX sessions_by_owner ON sessions (owner, created_at, id);
CREATE INDEX sessions_by_status ON sessions (status, created_at, id);
CREATE INDEX sessions_by_template ON sessions (template, created_at, id);
CREATE INDEX sessions_by_workspace ON sessions (workspace_id, created_at, id);
CREATE INDEX sessions_by_policy ON sessions (policy);
CREATE INDEX sessions_by_end ON sessions (closed_at) WHERE closed_at IS NOT NULL;

CREATE TABLE executions (
    id              BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    session         BLOB    NOT NULL REFERENCES sessions (id),
    owner           TEXT    NOT NULL,
    name            TEXT,
    kind            TEXT    NOT NULL,
    status          TEXT    NOT NULL,
    degraded        INTEGER NOT NULL DEFAULT 0,
    input           TEXT,
    path            TEXT,
    args            TEXT    NOT NULL,
    env             TEXT    NOT NULL,
    started_at      INTEGER NOT NULL,
    ended_at        INTEGER,
    result          TEXT,
    error_code      TEXT,
    error_message   TEXT,
    error_reason    TEXT,
    duration_ms     INTEGER NOT NULL DEFAULT 0,
    cpu_ms          INTEGER NOT NULL DEFAULT 0,
    host_wait_ms    INTEGER NOT NULL DEFAULT 0,
    events          INTEGER NOT NULL DEFAULT 0,
    output_bytes    INTEGER NOT NULL DEFAULT 0,
    heap_peak_bytes INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX executions_by_session ON executions (session, started_at, id);
CREATE UNIQUE INDEX executions_name ON executions (owner, name)
    WHERE name IS NOT NULL AND status IN ('running', 'waiting');
CREATE INDEX executions_by_name ON executions (name, started_at, id) WHERE name IS NOT NULL;
CREATE INDEX executions_unfinished ON executions (session) WHERE status IN ('running', 'waiting');

CREATE TABLE events (
    execution   BLOB    NOT NULL REFERENCES executions (id),
    seq         INTEGER NOT NULL,
    ts          INTEGER NOT NULL,
    type        TEXT    NOT NULL,
    label       TEXT,
    text        TEXT    NOT NULL,
    extra       TEXT,
    PRIMARY KEY (execution, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE programs (
    id          BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    owner       TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    is_active   INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    modified_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX programs_name ON programs (owner, name) WHERE is_active = 1;
CREATE INDEX programs_by_name ON programs (name, created_at, id) WHERE is_active = 1;
CREATE INDEX programs_by_owner ON programs (owner, created_at, id) WHERE is_active = 1;
CREATE INDEX programs_by_time ON programs (created_at, id) WHERE is_active = 1;

CREATE TABLE program_versions (
    program     BLOB    NOT NULL REFERENCES programs (id),
    version     INTEGER NOT NULL,
    source_hash BLOB    NOT NULL CHECK (length(source_hash) = 32),
    format      INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    source      TEXT    NOT NULL,
    code        BLOB    NOT NULL,
    UNIQUE (program, version)
) STRICT;

CREATE TABLE program_runs (
    execution   BLOB    NOT NULL PRIMARY KEY REFERENCES executions (id),
    program     BLOB    NOT NULL,
    version     INTEGER NOT NULL,
    FOREIGN KEY (program, version) REFERENCES program_versions (program, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
    id          BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    execution   BLOB    NOT NULL REFERENCES executions (id),
    owner       TEXT    NOT NULL,
    prompt      TEXT    NOT NULL,
    schema      TEXT,
    attempts    INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    deadline    INTEGER,
    ended_at    INTEGER,
    answer      TEXT
) STRICT;
CREATE INDEX tasks_by_execution ON tasks (execution);
CREATE UNIQUE INDEX tasks_pending ON tasks (execution) WHERE ended_at IS NULL;
CREATE INDEX tasks_pending_by_owner ON tasks (owner, created_at, id) WHERE ended_at IS NULL;
CREATE INDEX tasks_pending_by_time ON tasks (created_at, id) WHERE ended_at IS NULL;

CREATE TABLE checkpoints (
    execution   BLOB    NOT NULL REFERENCES executions (id),
    seq         INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    cause       TEXT    NOT NULL,
    bytes       INTEGER NOT NULL,
    PRIMARY KEY (execution, seq)
) STRICT, WITHOUT ROWID;

-- The newest version of each page is the state; NULL = the page is gone.
CREATE TABLE state_pages (
    execution   BLOB    NOT NULL REFERENCES executions (id),
    page        INTEGER NOT NULL,
    checkpoint  INTEGER NOT NULL,
    bytes       BLOB,
    PRIMARY KEY (execution, page, checkpoint)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency_keys (
    owner        TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    request_hash BLOB    NOT NULL CHECK (length(request_hash) = 32),
    subject      BLOB    NOT NULL CHECK (length(subject) = 16),
    created_at   INTEGER NOT NULL,
    reply        BLOB,
    PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (created_at);

CREATE TABLE audit_log (
    id          INTEGER PRIMARY KEY,
    at          INTEGER NOT NULL,
    owner       TEXT    NOT NULL,
    verb        TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    outcome     TEXT    NOT NULL
) STRICT;
CREATE INDEX audit_log_by_owner ON audit_log (owner, id);
CREATE INDEX audit_log_by_time ON audit_log (at);

CREATE TABLE meta (
    key         TEXT    NOT NULL PRIMARY KEY,
    value       BLOB    NOT NULL
) STRICT, WITHOUT ROWID;
