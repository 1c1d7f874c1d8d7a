PRAGMA application_id = 1986884473;
PRAGMA user_version = 21;
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
CREATE TABLE policies (
    hash        BLOB    NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
    snapshot    TEXT    NOT NULL,
    -- The owner of the first session that has it: it counts for this owner.
    owner       TEXT    NOT NULL
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
    -- `SessionFacts` as JSON; no statement in here reads a part of it.
    runtime_meta    TEXT    NOT NULL,
    -- The parent of a fork: an event of that session follows from the insertion.
    forked_from     BLOB,
    worker_seq      INTEGER NOT NULL DEFAULT 0,
    -- Where its worktree is and whose rights use it (`RecordedWorktree`); NULL for a program without files.
    files_uid       INTEGER,
    files_user      TEXT,
    files_root      TEXT,
    files_beneath   TEXT,
    files_handle    BLOB,
    -- The node whose process has its worker (`meta`); NULL: the one that has the database.
    node            BLOB
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_time ON sessions (durable, created_at, id);
CREATE INDEX sessions_by_owner ON sessions (owner, durable, created_at, id);
CREATE INDEX sessions_by_status ON sessions (status, durable, created_at, id);
CREATE INDEX sessions_by_template ON sessions (template, created_at, id);
CREATE INDEX sessions_by_workspace ON sessions (workspace_id, created_at, id);
CREATE INDEX sessions_by_policy ON sessions (policy);
CREATE INDEX sessions_by_end ON sessions (closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX sessions_by_name ON sessions (owner, name, created_at, id) WHERE name IS NOT NULL;
CREATE INDEX sessions_by_name_of_all ON sessions (name, created_at, id) WHERE name IS NOT NULL;
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
    -- The number of `process.exit` (`EXIT`).
    exit_code       INTEGER,
    duration_ms     INTEGER NOT NULL DEFAULT 0,
    cpu_ms          INTEGER NOT NULL DEFAULT 0,
    host_wait_ms    INTEGER NOT NULL DEFAULT 0,
    events          INTEGER NOT NULL DEFAULT 0,
    output_bytes    INTEGER NOT NULL DEFAULT 0,
    heap_peak_bytes INTEGER NOT NULL DEFAULT 0,
    -- Facts that a repetition of its input in another session needs (`RepeatFacts`).
    facts           INTEGER NOT NULL DEFAULT 0,
    -- The next five columns change with a step of a program, which writes this row anyway.
    -- The earliest `due_at` of the open items of a program's execution.
    wake_at         INTEGER,
    -- The use of limits since the last submitted answer, as of the last checkpoint (`SpentLimits` as JSON); NULL: none.
    spent           TEXT,
    -- Workers that exited since the last checkpoint.
    exits           INTEGER NOT NULL DEFAULT 0,
    -- Supervisors that were killed while they ran it, since the last checkpoint.
    kills           INTEGER NOT NULL DEFAULT 0,
    -- The number of its last answer (`items.answer_seq`).
    inbox           INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX executions_by_session ON executions (session, started_at, id);
CREATE UNIQUE INDEX executions_name ON executions (owner, name)
    WHERE name IS NOT NULL AND status IN ('running', 'waiting');
CREATE INDEX executions_by_name ON executions (owner, name, started_at, id) WHERE name IS NOT NULL;
CREATE INDEX executions_of_programs ON executions (owner, status, started_at, id) WHERE kind = 'program';
CREATE INDEX executions_unfinished ON executions (session) WHERE status IN ('running', 'waiting');
CREATE INDEX executions_running ON executions (id) WHERE kind = 'program' AND status = 'running';
CREATE INDEX executions_by_wake ON executions (wake_at, id) WHERE wake_at IS NOT NULL;
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
    -- The start of the execution, which never changes.
    started_at  INTEGER NOT NULL,
    FOREIGN KEY (program, version) REFERENCES program_versions (program, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX program_runs_by_program ON program_runs (program, started_at, execution);
CREATE INDEX program_runs_by_version ON program_runs (program, version);
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
CREATE INDEX items_untaken ON items (execution, answer_seq)
    WHERE ended_at IS NOT NULL AND taken_at IS NULL AND item >= 1099511627776;
CREATE INDEX items_taken ON items (execution, taken_at) WHERE taken_at IS NOT NULL AND kind <> 'question';
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
CREATE INDEX open_items_by_due ON open_items (execution, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX open_items_of_events ON open_items (owner, name, execution) WHERE kind = 'event';
CREATE TABLE mailbox (
    execution   BLOB    NOT NULL REFERENCES executions (id),
    seq         INTEGER NOT NULL,
    name        TEXT    NOT NULL,
    event       TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (execution, seq)
) STRICT, WITHOUT ROWID;
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
    -- Bytes that the program had written to files by then: its quota is for its life.
    written     INTEGER NOT NULL,
    PRIMARY KEY (execution, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE state_pages (
    execution   BLOB    NOT NULL REFERENCES executions (id),
    page        INTEGER NOT NULL,
    checkpoint  INTEGER NOT NULL,
    bytes       BLOB,
    PRIMARY KEY (execution, page, checkpoint)
) STRICT, WITHOUT ROWID;
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
CREATE INDEX schedules_by_due ON schedules (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX schedules_by_waiting ON schedules (waits_for) WHERE waits_for IS NOT NULL;
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
    -- The process that carries the request out (`Incarnation`); NULL: one of an earlier version.
    holder       BLOB,
    PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (created_at);
CREATE TABLE audit_log (
    id          INTEGER PRIMARY KEY,
    at          INTEGER NOT NULL,
    owner       TEXT    NOT NULL,
    verb        TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    outcome     TEXT    NOT NULL,
    api         TEXT    NOT NULL
) STRICT;
CREATE INDEX audit_log_by_owner ON audit_log (owner, id);
CREATE TABLE meta (
    key         TEXT    NOT NULL PRIMARY KEY,
    value       BLOB    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE staged (
    execution   BLOB    NOT NULL PRIMARY KEY REFERENCES executions (id),
    seq         INTEGER NOT NULL,
    bytes       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE owners (
    owner       TEXT    NOT NULL PRIMARY KEY,
    bytes       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
INSERT INTO templates VALUES (X'0000000003E801010101010101010101', 'owner-1', 't', 'quickjs', 1, '{"limits":{"cpu_ms":1,"wall_ms":2,"mem_mb":3,"max_events":4,"max_output_kb":5,"max_source_kb":6,"max_steps":7,"max_stack_depth":8,"max_state_mb":9},"resolver":{"roots":["lib"],"extensions":[".js"],"allow_absolute_repo_imports":true},"runtime":{"esm":true,"strict":true,"console":false,"on_crash":"close","ttl_s":10,"idle_timeout_s":11,"typecheck":"off"}}', 1001, 1001);
INSERT INTO template_modules VALUES (X'0000000003E801010101010101010101', 'fs');
INSERT INTO template_libraries VALUES (X'0000000003E801010101010101010101', 'dayjs-1');
INSERT INTO capabilities VALUES (X'04040404040404040404040404040404', X'0000000003E801010101010101010101', 'module', 'fs', 1, '{"read":["**"]}');
INSERT INTO startup_files VALUES (X'05050505050505050505050505050505', X'0000000003E801010101010101010101', 'start.js', -1, 'import');
INSERT INTO libraries VALUES ('dayjs-1', X'0303030303030303030303030303030303030303030303030303030303030303', 1234, 500, 'dayjs', '1', 'dayjs');
INSERT INTO policies VALUES (X'4E998AD7F5EEC81C63054D6B2903B383363B619D53697F7D79F4E259D2EDA5DC', '{"engine":"cvm","settings":{"limits":{"cpu_ms":1,"wall_ms":2,"mem_mb":3,"max_events":4,"max_output_kb":5,"max_source_kb":6,"max_steps":7,"max_stack_depth":8,"max_state_mb":9},"resolver":{"roots":["lib"],"extensions":[".js"],"allow_absolute_repo_imports":true},"runtime":{"esm":true,"strict":true,"console":false,"on_crash":"close","ttl_s":10,"idle_timeout_s":11,"typecheck":"off"}},"modules":["fs"],"libraries":["dayjs-1"],"capabilities":[{"id":"04040404-0404-0404-0404-040404040404","vm_id":"00000000-03e8-0101-0101-010101010101","kind":"module","name":"fs","enabled":true,"config":{"read":["**"]}}],"startup_files":[{"id":"05050505-0505-0505-0505-050505050505","vm_id":"00000000-03e8-0101-0101-010101010101","path":"start.js","order_index":-1,"mode":"import"}]}', 'owner-1');
INSERT INTO policies VALUES (X'A84F06A285A0DA1686DC53D7729123FE1686D75591CF6E349C3652208A355D3C', '{"engine":"quickjs","settings":{"limits":{"cpu_ms":1,"wall_ms":2,"mem_mb":3,"max_events":4,"max_output_kb":5,"max_source_kb":6,"max_steps":7,"max_stack_depth":8,"max_state_mb":9},"resolver":{"roots":["lib"],"extensions":[".js"],"allow_absolute_repo_imports":true},"runtime":{"esm":true,"strict":true,"console":false,"on_crash":"close","ttl_s":10,"idle_timeout_s":11,"typecheck":"off"}},"modules":["fs"],"libraries":["dayjs-1"],"capabilities":[{"id":"04040404-0404-0404-0404-040404040404","vm_id":"00000000-03e8-0101-0101-010101010101","kind":"module","name":"fs","enabled":true,"config":{"read":["**"]}}],"startup_files":[{"id":"05050505-0505-0505-0505-050505050505","vm_id":"00000000-03e8-0101-0101-010101010101","path":"start.js","order_index":-1,"mode":"import"}]}', 'owner-1');
INSERT INTO sessions VALUES (X'0000000007D001010101010101010101', 'owner-1', 's', X'0000000003E801010101010101010101', X'A84F06A285A0DA1686DC53D7729123FE1686D75591CF6E349C3652208A355D3C', 0, 'w', 'c', '/w', 'crashed', 2001, 5000, 'the keeper is lost', 'keeper_lost', '{"forked_from":"00000000-07d0-0808-0808-080808080808","restored_from":"00000000-07d0-0909-0909-090909090909","restoration":{"inputs":3,"not_repeated":1},"restored":{"inputs":3,"not_repeated":1,"different":2},"generation":3,"last_checkpoint":2,"checkpoints":[{"number":2,"name":"c","created_at":"1970-01-01T00:00:03.100Z","heap_bytes":7}],"checkpoints_lost":{"count":1,"reason":"host_restart"},"rollback":{"at":"1970-01-01T00:00:03.200Z","checkpoint":2,"reason":"request","generation":2,"copy":"00000000-07d0-0707-0707-070707070707","lacks":"a file that was written","recoveries":["1970-01-01T00:00:03.200Z"]},"restart":{"at":"1970-01-01T00:00:03.300Z","reason":"keeper_lost","reported":true,"generation":3,"recoveries":["1970-01-01T00:00:03.200Z","1970-01-01T00:00:03.300Z"]},"crash":{"reason":"keeper_lost","execution_id":"00000000-0bb8-0202-0202-020202020202","cpu_ms":6,"peak_memory_kib":4096},"drain_at":"1970-01-01T00:00:06.000Z"}', X'0000000007D008080808080808080808', 12, 1000, 'alice', '/', 'w', X'0100000009', X'F90420446ECBDA0F33811F79569E8BB4');
INSERT INTO sessions VALUES (X'0000000007D002020202020202020202', 'owner-1', NULL, X'0000000003E801010101010101010101', X'4E998AD7F5EEC81C63054D6B2903B383363B619D53697F7D79F4E259D2EDA5DC', 1, 'w', 'c', '/w', 'ready', 2002, NULL, NULL, NULL, '{}', NULL, 0, 1000, 'alice', '/', 'w', X'0100000009', X'F90420446ECBDA0F33811F79569E8BB4');
INSERT INTO executions VALUES (X'000000000BB801010101010101010101', X'0000000007D001010101010101010101', 'owner-1', 'e', 'repl', 'ok', 0, '1 + 2', NULL, '{}', '{}', 3001, 4001, '3', NULL, NULL, NULL, NULL, 7, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, 0, 0);
INSERT INTO executions VALUES (X'000000000BB802020202020202020202', X'0000000007D001010101010101010101', 'owner-1', NULL, 'run_file', 'error', 1, NULL, 'a.js', '{}', '{}', 3002, 4002, NULL, 'EXCEPTION', 'no', 'because', 7, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, 0, 0);
INSERT INTO executions VALUES (X'000000000BB803030303030303030303', X'0000000007D002020202020202020202', 'owner-1', 'run', 'program', 'waiting', 0, '1 + 2', NULL, '{}', '{}', 3003, NULL, NULL, NULL, NULL, NULL, NULL, 5, 4, 0, 0, 0, 0, 0, 9000, '{"wall_ms":1,"cpu_us":2,"events":3,"output_bytes":4,"calls":{"fs":{"calls":5,"denied":6,"refused":7,"bytes_in":8,"bytes_out":9}}}', 2, 1, 2);
INSERT INTO events VALUES (X'000000000BB801010101010101010101', 1, 3500, 'console', 'log', 'line 1', NULL);
INSERT INTO events VALUES (X'000000000BB801010101010101010101', 2, 3500, 'input_echo', NULL, '1 + 2', NULL);
INSERT INTO events VALUES (X'000000000BB801010101010101010101', 3, 3500, 'value', 'number', '3', '3');
INSERT INTO events VALUES (X'000000000BB801010101010101010101', 4, 3500, 'exception', NULL, 'Error: no', 'at a.js:1');
INSERT INTO events VALUES (X'000000000BB801010101010101010101', 5, 3500, 'stdout', NULL, 'out', NULL);
INSERT INTO events VALUES (X'000000000BB801010101010101010101', 6, 3500, 'task', '08080808-0808-0808-0808-080808080808', 'go on?', NULL);
INSERT INTO programs VALUES (X'07070707070707070707070707070707', 'owner-1', 'p', 1, 1, 3000, 3000);
INSERT INTO program_versions VALUES (X'07070707070707070707070707070707', 1, X'0606060606060606060606060606060606060606060606060606060606060606', 1, 3000, 'CC(''go on?'')', X'0001FF');
INSERT INTO program_runs VALUES (X'000000000BB803030303030303030303', X'07070707070707070707070707070707', 1, 'owner-1', 3003);
INSERT INTO items VALUES (X'000000000BB803030303030303030303', 1, X'08080808080808080808080808080808', 'question', 'owner-1', NULL, 'go on?', '{"type":"boolean"}', 2, 4000, 9000, 4300, 'true', 1, NULL, 1, 3, 'false', 'answered', 4100, 4200);
INSERT INTO items VALUES (X'000000000BB803030303030303030303', 1099511627777, X'15151515151515151515151515151515', 'event', 'owner-1', 'paid', '', NULL, 0, 4000, 9000, 4350, '[6]', 2, 2, 1, NULL, 'false', 'answered', NULL, NULL);
INSERT INTO items VALUES (X'000000000BB803030303030303030303', 1099511627778, X'16161616161616161616161616161616', 'event', 'owner-1', 'paid', '', NULL, 0, 4000, 9000, NULL, NULL, NULL, NULL, 1, NULL, 'false', NULL, NULL, NULL);
INSERT INTO items VALUES (X'000000000BB803030303030303030303', 2, X'09090909090909090909090909090909', 'question', 'owner-1', NULL, 'go on?', '{"type":"boolean"}', 0, 4000, 9000, NULL, NULL, NULL, NULL, 2, 3, 'false', NULL, NULL, NULL);
INSERT INTO open_items VALUES (X'000000000BB803030303030303030303', 1099511627778, X'16161616161616161616161616161616', 'event', 'paid', 'owner-1', 4000, 9000);
INSERT INTO open_items VALUES (X'000000000BB803030303030303030303', 2, X'09090909090909090909090909090909', 'question', NULL, 'owner-1', 4000, 9000);
INSERT INTO mailbox VALUES (X'000000000BB803030303030303030303', 4, 'paid', '[7]', 4400);
INSERT INTO checkpoints VALUES (X'000000000BB803030303030303030303', 1, 4000, 'pause', 144, NULL, 100, 20);
INSERT INTO checkpoints VALUES (X'000000000BB803030303030303030303', 2, 4000, 'pause', 136, X'0001', 200, 40);
INSERT INTO state_pages VALUES (X'000000000BB803030303030303030303', 0, 1, X'0101010101010101');
INSERT INTO state_pages VALUES (X'000000000BB803030303030303030303', 0, 2, X'0303030303030303');
INSERT INTO state_pages VALUES (X'000000000BB803030303030303030303', 1, 1, X'0202020202020202');
INSERT INTO state_pages VALUES (X'000000000BB803030303030303030303', 1, 2, NULL);
INSERT INTO schedules VALUES (X'0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A', 'owner-1', 's', 4000, 1, 30000, 30400, X'000000000BB803030303030303030303', '{"rule":{"cron":"0 3 * * *","every_ms":1000,"time_zone":"UTC","overlap":"queue","jitter_ms":500},"start":{"program":"p","name":"nightly","args":["a"],"env":[["KEY","value"]],"template":"00000000-03e8-0101-0101-010101010101","worktree_path":"/w","as_user":"alice"}}', '{"queued_for":"1970-01-01T00:00:20.000Z","last":{"execution_id":"00000000-0bb8-0303-0303-030303030303","scheduled_for":"1970-01-01T00:00:10.000Z","late_ms":7},"skipped":{"scheduled_for":"1970-01-01T00:00:10.000Z","reason":"because"},"error":{"scheduled_for":"1970-01-01T00:00:10.000Z","at":"1970-01-01T00:00:10.100Z","code":"PROGRAM_NOT_FOUND","message":"no"}}');
INSERT INTO current_executions VALUES ('owner-1', 'agent', X'000000000BB803030303030303030303', 4000);
INSERT INTO idempotency_keys VALUES ('owner-1', 'k', X'0101010101010101010101010101010101010101010101010101010101010101', X'02020202020202020202020202020202', 100, X'010203', X'05050505050505050505050505050505');
INSERT INTO audit_log VALUES (1, 200, 'owner-1', 'template create', 't', 'ok', 'rest');
INSERT INTO meta VALUES ('m', X'09');
INSERT INTO meta VALUES ('node', X'F90420446ECBDA0F33811F79569E8BB4');
INSERT INTO staged VALUES (X'000000000BB803030303030303030303', 3, 72);
INSERT INTO owners VALUES ('(commits)', 3);
INSERT INTO owners VALUES ('owner-1', 19606);
INSERT INTO session_events VALUES (X'0000000007D001010101010101010101', 1, 2001, 'created', NULL, X'0000000007D008080808080808080808', NULL);
INSERT INTO session_events VALUES (X'0000000007D001010101010101010101', 2, 3001, 'execution_started', NULL, X'000000000BB801010101010101010101', NULL);
INSERT INTO session_events VALUES (X'0000000007D001010101010101010101', 3, 4001, 'execution_ended', NULL, X'000000000BB801010101010101010101', 'ok');
INSERT INTO session_events VALUES (X'0000000007D001010101010101010101', 5, 4002, 'execution_ran', 3002, X'000000000BB802020202020202020202', 'error');
INSERT INTO session_events VALUES (X'0000000007D001010101010101010101', 6, 5000, 'crashed', NULL, NULL, 'keeper_lost: the keeper is lost');
CREATE TRIGGER sessions_inserted AFTER INSERT ON sessions BEGIN
    INSERT INTO owners VALUES (NEW.owner, 1024 + octet_length(NEW.workspace_id) + octet_length(NEW.base_commit_oid)
        + octet_length(NEW.worktree_path) + octet_length(NEW.runtime_meta)
        + coalesce(octet_length(NEW.files_root), 0) + coalesce(octet_length(NEW.files_beneath), 0)
        + coalesce(octet_length(NEW.last_error), 0)
        + 4096 * min((octet_length(NEW.workspace_id) + octet_length(NEW.base_commit_oid)
        + octet_length(NEW.worktree_path) + octet_length(NEW.runtime_meta)
        + coalesce(octet_length(NEW.files_root), 0) + coalesce(octet_length(NEW.files_beneath), 0)
        + coalesce(octet_length(NEW.last_error), 0)) / 700, 1))
    ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER sessions_updated AFTER UPDATE OF last_error, runtime_meta ON sessions BEGIN
    UPDATE owners SET bytes = max(0, bytes + (1024 + octet_length(NEW.workspace_id)
        + octet_length(NEW.base_commit_oid) + octet_length(NEW.worktree_path) + octet_length(NEW.runtime_meta)
        + coalesce(octet_length(NEW.files_root), 0) + coalesce(octet_length(NEW.files_beneath), 0)
        + coalesce(octet_length(NEW.last_error), 0)
        + 4096 * min((octet_length(NEW.workspace_id) + octet_length(NEW.base_commit_oid)
        + octet_length(NEW.worktree_path) + octet_length(NEW.runtime_meta)
        + coalesce(octet_length(NEW.files_root), 0) + coalesce(octet_length(NEW.files_beneath), 0)
        + coalesce(octet_length(NEW.last_error), 0)) / 700, 1))
        - (1024 + octet_length(OLD.workspace_id) + octet_length(OLD.base_commit_oid)
        + octet_length(OLD.worktree_path) + octet_length(OLD.runtime_meta)
        + coalesce(octet_length(OLD.files_root), 0) + coalesce(octet_length(OLD.files_beneath), 0)
        + coalesce(octet_length(OLD.last_error), 0)
        + 4096 * min((octet_length(OLD.workspace_id) + octet_length(OLD.base_commit_oid)
        + octet_length(OLD.worktree_path) + octet_length(OLD.runtime_meta)
        + coalesce(octet_length(OLD.files_root), 0) + coalesce(octet_length(OLD.files_beneath), 0)
        + coalesce(octet_length(OLD.last_error), 0)) / 700, 1)))
    WHERE owner = NEW.owner;
END;
CREATE TRIGGER sessions_deleted AFTER DELETE ON sessions BEGIN
    UPDATE owners SET bytes = max(0, bytes - (1024 + octet_length(OLD.workspace_id)
        + octet_length(OLD.base_commit_oid) + octet_length(OLD.worktree_path) + octet_length(OLD.runtime_meta)
        + coalesce(octet_length(OLD.files_root), 0) + coalesce(octet_length(OLD.files_beneath), 0)
        + coalesce(octet_length(OLD.last_error), 0)
        + 4096 * min((octet_length(OLD.workspace_id) + octet_length(OLD.base_commit_oid)
        + octet_length(OLD.worktree_path) + octet_length(OLD.runtime_meta)
        + coalesce(octet_length(OLD.files_root), 0) + coalesce(octet_length(OLD.files_beneath), 0)
        + coalesce(octet_length(OLD.last_error), 0)) / 700, 1)))
    WHERE owner = OLD.owner;
END;
CREATE TRIGGER templates_inserted AFTER INSERT ON templates BEGIN
    INSERT INTO owners VALUES (NEW.owner, 512 + octet_length(NEW.name) + octet_length(NEW.settings))
    ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER templates_updated AFTER UPDATE OF name, settings ON templates BEGIN
    UPDATE owners SET bytes = max(0, bytes + (512 + octet_length(NEW.name) + octet_length(NEW.settings))
        - (512 + octet_length(OLD.name) + octet_length(OLD.settings)))
    WHERE owner = NEW.owner;
END;
CREATE TRIGGER templates_deleted AFTER DELETE ON templates BEGIN
    UPDATE owners SET bytes = max(0, bytes - (512 + octet_length(OLD.name) + octet_length(OLD.settings)))
    WHERE owner = OLD.owner;
END;
CREATE TRIGGER capabilities_inserted AFTER INSERT ON capabilities BEGIN
    UPDATE owners SET bytes = bytes + 256 + octet_length(NEW.name) + octet_length(NEW.config)
    WHERE owner = (SELECT owner FROM templates WHERE id = NEW.template);
END;
CREATE TRIGGER capabilities_deleted AFTER DELETE ON capabilities BEGIN
    UPDATE owners SET bytes = max(0, bytes - (256 + octet_length(OLD.name) + octet_length(OLD.config)))
    WHERE owner = (SELECT owner FROM templates WHERE id = OLD.template);
END;
CREATE TRIGGER startup_files_inserted AFTER INSERT ON startup_files BEGIN
    UPDATE owners SET bytes = bytes + 256 + octet_length(NEW.path)
    WHERE owner = (SELECT owner FROM templates WHERE id = NEW.template);
END;
CREATE TRIGGER startup_files_deleted AFTER DELETE ON startup_files BEGIN
    UPDATE owners SET bytes = max(0, bytes - (256 + octet_length(OLD.path)))
    WHERE owner = (SELECT owner FROM templates WHERE id = OLD.template);
END;
CREATE TRIGGER program_versions_inserted AFTER INSERT ON program_versions BEGIN
    INSERT INTO owners
        SELECT owner, 256 + octet_length(NEW.source) + length(NEW.code) FROM programs WHERE id = NEW.program
    ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER program_versions_updated AFTER UPDATE OF source, code ON program_versions BEGIN
    UPDATE owners SET bytes = max(0, bytes + (256 + octet_length(NEW.source) + length(NEW.code))
        - (256 + octet_length(OLD.source) + length(OLD.code)))
    WHERE owner = (SELECT owner FROM programs WHERE id = NEW.program);
END;
CREATE TRIGGER program_versions_deleted AFTER DELETE ON program_versions BEGIN
    UPDATE owners SET bytes = max(0, bytes - (256 + octet_length(OLD.source) + length(OLD.code)))
    WHERE owner = (SELECT owner FROM programs WHERE id = OLD.program);
END;
CREATE TRIGGER owners_of_policies AFTER INSERT ON policies BEGIN
    INSERT INTO owners VALUES (NEW.owner, 64 + octet_length(NEW.snapshot))
        ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER owners_of_deleted_policies AFTER DELETE ON policies BEGIN
    UPDATE owners SET bytes = max(0, bytes - (64 + octet_length(OLD.snapshot))) WHERE owner = OLD.owner;
END;
CREATE TRIGGER session_events_of_created AFTER INSERT ON sessions WHEN NEW.durable = 0 BEGIN
    INSERT INTO session_events SELECT NEW.id, 1, NEW.created_at, 'created', NULL,
        NEW.forked_from, NULL;
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
CREATE TRIGGER session_events_of_deleted_execution AFTER DELETE ON executions WHEN OLD.kind <> 'program' BEGIN
    DELETE FROM session_events WHERE session = OLD.session AND at <= OLD.ended_at
        AND seq < (SELECT max(seq) FROM session_events WHERE session = OLD.session)
        AND seq <= (SELECT max(seq) FROM (SELECT seq FROM session_events WHERE session = OLD.session ORDER BY seq LIMIT 8));
END;
CREATE TRIGGER session_events_of_deleted_session BEFORE DELETE ON sessions WHEN OLD.durable = 0 BEGIN
    DELETE FROM session_events WHERE session = OLD.id;
END;
CREATE TRIGGER owners_of_session_events AFTER INSERT ON session_events
WHEN NEW.type NOT LIKE 'execution%' AND NEW.type NOT IN ('created', 'forked') BEGIN
    INSERT INTO owners SELECT owner, 128 FROM sessions WHERE id = NEW.session
        ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER owners_of_deleted_session_events AFTER DELETE ON session_events
WHEN OLD.type NOT LIKE 'execution%' AND OLD.type NOT IN ('created', 'forked') BEGIN
    UPDATE owners SET bytes = max(0, bytes - 128) WHERE owner = (SELECT owner FROM sessions WHERE id = OLD.session);
END;
