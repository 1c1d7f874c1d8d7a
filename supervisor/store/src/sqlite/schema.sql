-- Schema version 10, the first one of a release. Never edited: a later version is a step of its own (open.rs).
--
-- Ids are 16-byte UUIDs, times are milliseconds since the Unix epoch, JSON is text.
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
    installed_at INTEGER NOT NULL,
    id           TEXT    NOT NULL,
    version      TEXT    NOT NULL,
    -- The name in the global scope.
    global       TEXT
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
-- Sessions of scripts are listed without reading those of durable programs, which may be many more, and the reverse.
CREATE INDEX sessions_by_time ON sessions (durable, created_at, id);
CREATE INDEX sessions_by_owner ON sessions (owner, durable, created_at, id);
CREATE INDEX sessions_by_status ON sessions (status, durable, created_at, id);
CREATE INDEX sessions_by_template ON sessions (template, created_at, id);
CREATE INDEX sessions_by_workspace ON sessions (workspace_id, created_at, id);
CREATE INDEX sessions_by_policy ON sessions (policy);
CREATE INDEX sessions_by_end ON sessions (closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX sessions_by_name ON sessions (owner, name, created_at, id) WHERE name IS NOT NULL;
CREATE INDEX sessions_by_name_of_all ON sessions (name, created_at, id) WHERE name IS NOT NULL;
-- What a start of the supervisor marks as crashed.
CREATE INDEX sessions_live ON sessions (id) WHERE durable = 0 AND status IN ('starting', 'ready');

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
-- What a start of the supervisor resumes.
CREATE INDEX executions_running ON executions (id) WHERE kind = 'program' AND status = 'running';

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
CREATE INDEX program_versions_by_source ON program_versions (program, source_hash, version);

CREATE TABLE program_runs (
    execution   BLOB    NOT NULL PRIMARY KEY REFERENCES executions (id),
    program     BLOB    NOT NULL,
    version     INTEGER NOT NULL,
    owner       TEXT    NOT NULL,
    FOREIGN KEY (program, version) REFERENCES program_versions (program, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX program_runs_by_program ON program_runs (program, execution);
CREATE INDEX program_runs_by_owner ON program_runs (owner, execution);
CREATE INDEX program_runs_by_version ON program_runs (program, version);

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
    answer      TEXT,
    -- The checkpoint behind which it was created.
    checkpoint  INTEGER NOT NULL,
    retries     INTEGER,
    fallback    TEXT,
    outcome     TEXT,
    -- When answers came that did not fit.
    first_attempt_at INTEGER,
    last_attempt_at  INTEGER
) STRICT;
CREATE INDEX tasks_by_execution ON tasks (execution, checkpoint);
CREATE INDEX tasks_by_deadline ON tasks (deadline, id) WHERE ended_at IS NULL AND deadline IS NOT NULL;
CREATE UNIQUE INDEX tasks_pending ON tasks (execution) WHERE ended_at IS NULL;
CREATE INDEX tasks_pending_by_owner ON tasks (owner, created_at, id) WHERE ended_at IS NULL;
CREATE INDEX tasks_pending_by_time ON tasks (created_at, id) WHERE ended_at IS NULL;

CREATE TABLE checkpoints (
    execution   BLOB    NOT NULL REFERENCES executions (id),
    seq         INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    cause       TEXT    NOT NULL,
    bytes       INTEGER NOT NULL,
    -- The pages that it wrote, so that forgetting old versions costs what was written and not the state: sorted page numbers,
    -- each as the difference to the one before, in LEB128. NULL in the first one of an execution, which is never forgotten so.
    pages       BLOB,
    -- Bytes written since the size of the state was last checked, so that it is checked after so many bytes and not once for
    -- each process. NULL: unknown.
    unweighed   INTEGER,
    -- What the program had written to files by then (bytes): its quota is for its life.
    written     INTEGER NOT NULL,
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

-- Which execution a client means when it names none.
CREATE TABLE current_executions (
    owner       TEXT    NOT NULL,
    client      TEXT    NOT NULL,
    execution   BLOB    NOT NULL REFERENCES executions (id),
    at          INTEGER NOT NULL,
    PRIMARY KEY (owner, client)
) STRICT, WITHOUT ROWID;
CREATE INDEX current_executions_by_execution ON current_executions (execution);
CREATE INDEX current_executions_by_time ON current_executions (owner, at, client);

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

-- Forgotten in the order of its lines: an index by time would be one more page in every commit with a line.
CREATE TABLE audit_log (
    id          INTEGER PRIMARY KEY,
    at          INTEGER NOT NULL,
    owner       TEXT    NOT NULL,
    verb        TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    outcome     TEXT    NOT NULL,
    door        TEXT    NOT NULL
) STRICT;
CREATE INDEX audit_log_by_owner ON audit_log (owner, id);

CREATE TABLE meta (
    key         TEXT    NOT NULL PRIMARY KEY,
    value       BLOB    NOT NULL
) STRICT, WITHOUT ROWID;
