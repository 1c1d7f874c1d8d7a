//! The lists: every struct and enum of the wire, by fields and variants. Holds no logic.

use super::*;

macro_rules! limits { ($($name:ident: $_type:ident = $_default:literal, $_ceiling:literal, $_zero:ident, $_unit:literal, $_text:literal;)+) => {
    structs! { Limits { $($name),+ } }
} }
vm_system_protocol::for_each_limit!(limits);

structs! {
    ArchiveExport { kind, reference, after }
    ImportPart { import, at, bytes }
    ImportEnd { import }
    ImportDrop { import }
    ExecGet { execution }
    ExecEvents { execution, after_seq, limit, follow }
    ExecWait { execution }
    ExecCancel { execution }
    LibraryCatalog {}
    LibraryRemove { name }
    LibraryVerify { name }
    ProgramGet { program, version }
    ProgramVersions { program, page }
    ProgramDelete { program }
    ProgramTotals {}
    PlanLoad { name, plan, done }
    RunGet { execution }
    RunDelete { execution }
    RunRewind { execution, checkpoint }
    RunFork { execution, checkpoint, name }
    RunRerun { execution, checkpoint, answers, variables, name, end_old }
    OtherAnswer { task, result }
    OtherValue { name, value, frame }
    StateGet { execution, checkpoint }
    StateSet { execution, name, value, frame }
    CheckpointList { execution }
    CurrentGet { client }
    CurrentSet { client, execution }
    HealthGet {}
    RuntimeSummaryGet {}
    RuntimeInfoGet {}
    Doctor {}
    Shutdown {}
    AuditList { before, limit }
    BackupBegin {}
    BackupPart { backup, at }
    BackupEnd { backup }
    DatabaseCheck {}
    Upgrade {}
    UpgradeDrain { drain_by }
    SessionGet { session }
    SessionClose { session }
    SessionRename { session, name }
    SessionInspect { session }
    SessionKill { session, signal }
    SessionFork { session, count }
    SessionAddCheckpoint { session, name }
    SessionCheckpoints { session }
    SessionDeleteCheckpoint { session, checkpoint }
    SessionRollback { session, checkpoint }
    SessionEvents { session, after_seq, limit, wait }
    SessionSuspend { session }
    SessionResume { session }
    RestorationGet { session, wait_after }
    TaskGet { execution }
    TaskSubmit { execution, task, result, wait }
    EventEmit { name, event, execution }
    TaskPrompts { executions, bytes }
    TemplateCreate { name, engine, settings, modules }
    TemplateList { page, built_in }
    TemplateGet { template }
    TemplateUpdate { template, change }
    TemplateDelete { template }
    TemplateAddModule { template, name }
    TemplateRemoveModule { template, name }
    TemplateAddCapability { template, capability }
    TemplateRemoveCapability { template, capability }
    TemplateAddStartup { template, file }
    TemplateRemoveStartup { template, file }
    TemplateAddLibrary { template, name }
    TemplateRemoveLibrary { template, name }
    ModuleCatalog {}
    TemplateDeleted { status, template_id }
    DirEntry { name, kind }
    FileStat { kind, size, mode, mtime_ms, ctime_ms, atime_ms }
    WriteMode { create, exclusive, truncate, append }
    FsTerms { links, tree, existing_levels, max_file_bytes, max_entries }
    DatabaseTerms { read_only, max_rows, max_result_bytes, max_database_bytes, growth_bytes, timeout_ms }
    ExecRequest { command, arguments, input, folder, environment }
    ExecTerms { program, read, write, timeout_ms, max_output_bytes, memory_bytes, processes }
    ExecReply { code, signal, timed_out, stdout, stderr, truncated }
    HostError { code, message }
    HttpRequest { method, url, headers, data, end }
    HttpHeader { name, value }
    ExchangeProgress { exchange, progress }
    EgressRequest { method, tls, host, port, target, headers, data, end, terms }
    EgressTerms { owner, reach, own_ports, head_ms, timeout_ms, max_request_bytes, max_response_bytes, secrets }
    SecretValue { name, value }
    HttpRecord { method, origin, path, status, error, sent, received, ms }
    PackageFile { path, source }
    WorkerRecord { session, inner_pid, wait_status }
    ProcessUsage { cpu_ms, peak_memory_kib }
    LayerReport { name, in_force, detail }
    JailFailure { step, errno, hint }
    Start { session, limits, random_seed, console }
    Execute { execution, kind, source, file_name, format, args, env, argv, policy }
    Policy { limits, resolver, strict, modules, refused_modules, disabled_globals }
    WorkerEvent { at_us, payload }
    Done { execution, events, outcome, usage }
    Usage { cpu_us, heap_bytes, heap_peak_bytes }
    Resolver { roots, extensions, allow_absolute_repo_imports }
    RuntimeSettings { esm, strict, console, on_crash, ttl_s, idle_timeout_s, typecheck }
    Settings { limits, resolver, runtime }
    Event { execution_id, seq, ts, payload }
    ResultValue { kind, preview, json, truncated, full_bytes }
    Metrics { duration_ms, cpu_ms, host_wait_ms, events, output_bytes, heap_peak_bytes }
    ExecutionError { code, message, reason, exit_code, truncated, full_bytes }
    Execution {
        id, session_id, kind, input, path, args, env, status, started_at, ended_at, result, error, metrics, degraded,
        events, owner,
    }
    Session {
        id, name, template_id, vm_id, workspace_id, base_commit_oid, worktree_path, status, created_at, closed_at,
        last_error, close_reason, runtime_meta, engine, execution_id, owner,
    }
    SessionEvent { session_id, seq, at, kind, execution_id, other_session_id, detail }
    SessionEventPage { events, is_last }
    BackupInfo { id, bytes, sha256, at }
    CheckReport { ok, schema, bytes, newest_record, findings, more }
    CheckFinding { check, object, id, detail }
    SessionInspection {
        session_id, status, pid, cpu_ms, rss_kib, pss_kib, uss_kib, js_heap_bytes, fds, seccomp_mode, no_new_privs,
        cap_eff, namespaces, rlimits, running_execution, heartbeat_age_ms, adopted, generation, next_cull_at,
    }
    SessionCheckpoint { number, name, created_at, heap_bytes }
    SessionFacts {
        forked_from, restored_from, restoration, restored, generation, last_checkpoint, checkpoints, checkpoints_lost,
        rollback, restart, crash, drain_at, restore,
    }
    RestorationPlan { inputs, not_repeated }
    RestoredInputs { inputs, not_repeated, different }
    LostCheckpoints { count, reason }
    LastRollback { at, checkpoint, reason, generation, copy, lacks, recoveries }
    LastRestart { at, reason, reported, generation, recoveries }
    LastCrash { reason, execution_id, cpu_ms, peak_memory_kib }
    Restorability { possible, command, reason }
    SessionRestoration {
        session, restored_from, status, inputs, repeated, not_repeated, different, differences, error,
    }
    InputDifference { input, execution_id, repeated_as, before, now }
    SessionRestore { session, repeat_effects, inputs, wait }
    GivenInput { input, args, env, argv, source }
    Template { id, name, engine, is_active, exposed_modules, libraries, created_at, updated_at, built_in }
    TemplateDetail { template, settings, capabilities, startup_files }
    Capability { id, vm_id, kind, name, enabled, config }
    StartupFile { id, vm_id, path, order_index, mode }
    ClientHello { protocol, version }
    ServerHello { protocol, version, refusal }
    TemplateChange { name, settings }
    SessionCreate { template, workspace_id, base_commit_oid, worktree_path, as_user, name, ttl_s, idle_timeout_s }
    NewCapability { kind, name, enabled, config }
    NewStartupFile { path, order_index, mode }
    LibraryInstall { id, version, global, source, unchecked }
    ListPage { limit, after }
    ListCursor { at, id }
    SessionList { status, template, workspace_id, engine, page }
    Period { since, until }
    ExecList { session, status, period, page }
    RunList { status, program, name, period, owner, page }
    TaskList { status, execution, program, period, owner, page }
    ProgramList { name, period, owner, page }
    AuditRecord { seq, at, owner, api, verb, subject, outcome }
    ExecStart { session, kind, input, path, args, env, argv, wait, follow }
    Program { id, name, version, source_hash, format, created_at, modified_at, source, typescript, owner }
    ProgramVersion { version, source_hash, format, created_at }
    Diagnostic { message, file, line, column, snippet }
    Task {
        id, execution_id, prompt, schema, attempts, created_at, deadline, first_attempt_at, last_attempt_at,
    }
    ListedTask { task, status, ended_at, answer, owner }
    TaskStatus { execution_id, name, status, task, more_tasks, waiting_for, result, error }
    WaitingFor { questions, timers, events, wakes_at }
    AbandonedItem { kind, name, task_id, answer }
    Run { execution, name, program_id, program, program_version, task, waiting_for, activity, abandoned }
    CheckpointInfo { seq, at, cause, bytes }
    ProgramState { frames, more_frames, globals }
    ProgramFrame { function, file, line, column, source_line, variables, items }
    Variable { name, value }
    ExportCursor { id, checkpoint, chain, records, place }
    ExportPart { text, next }
    ImportBegin { kind, name, program_name, template, worktree_path, as_user }
    ProgramStart { program, name, args, env, template, worktree_path, as_user, wait }
    PlanCheck { file, text, parts }
    ScheduleRule { cron, every_ms, time_zone, overlap, jitter_ms }
    Schedule {
        id, name, program, cron, every_ms, time_zone, overlap, jitter_ms, execution_name, args, env, template_id,
        worktree_path, as_user, created_at, paused, next_at, queued_for, last, skipped, last_error, owner,
    }
    ScheduledStart { execution_id, scheduled_for, late_ms }
    SkippedTime { scheduled_for, reason }
    FailedStart { scheduled_for, at, code, message }
    ScheduleAdd { name, rule, start }
    ScheduleList { owner, page }
    ScheduleGet { schedule }
    SchedulePause { schedule }
    ScheduleResume { schedule }
    ScheduleRun { schedule }
    ScheduleDelete { schedule }
    ProgramLoad { name, source, typescript, file, files }
    CompiledPlan { valid, blocks, block_ids, plan }
    EmittedEvent { received, receivers }
    EventReceiver { execution_id, name, awaited }
    ProgramCounts { programs, executions }
    PendingPrompt { execution, task, text }
    StatePage { number, bytes }
    DurableLimits { heap_bytes, stack_depth, steps }
    Segment { now_ms, cpu_ms, wall_ms, max_events, max_output_bytes, checkpoint_steps, checkpoint_ms }
    Stop { cause, cpu_us, heap_bytes, applied }
    CreatedItem { number, at_us, content }
    AnsweredItem { number, answer }
    HostCall { name, args }
    HttpResponse { status, reason, headers, body }
    Health { status, memory, largest_owner, database, stuck }
    DatabaseSize { used_bytes, free_bytes, gives_back }
    MemoryOwner { owner, held_mb, share_mb }
    RuntimeSummary { active_sessions, active_session_ids }
    UpgradeReport { drain_at, builds, unreached }
    BuildUse { version, build, protocol, current, keepers, idle, busy, waiting, suspended, programs, oldest }
    SandboxLayer { name, in_force, required, detail }
    ZygoteInfo { engine, libraries, modules, pid, forks }
    RuntimeInfo {
        version, pid, uptime_ms, keeper_pid, sandbox, zygotes, active_sessions, sessions_created, executions_started,
        durability, store_queue, store_problem,
    }
    DoctorReport { kernel, ok, problem, layers, host, stuck }
    StuckExecution { execution_id, owner, why }
    HostFinding { name, works, required, detail }
    ModuleInfo { name, description }
    TemplateName { template_id, name }
    LibraryInfo { name, id, version, global, installed, sha256, bytes, installed_at }
    LibraryCheck { name, ok, problem }
    OpError { code, message, details, hint }
}

enums! {
    ToBroker { Call { call, execution, request }, ExecutionEnded, Shutdown }
    FromBroker { Ready, Failed { message }, Reply { call, reply } }
    BrokerCall { Fs { request, terms }, Database { request, terms }, Exec { request, terms } }
    BrokerReply { Fs(reply), Database(reply), Exec(reply) }
    HttpCall {
        Open { exchange, request }, Send { exchange, data, end }, Wait { open, pull, timeout_ms }, Close { exchange },
    }
    HttpReply { Done, Progress(progress) }
    HttpProgress { Sent, Head { status, reason, headers, http2 }, Data(bytes), End, Failed(error) }
    ToEgress {
        Open { exchange, request }, Send { exchange, data, end }, Pull { exchange }, Close { exchange }, Ping,
    }
    FromEgress { Ready, Failed { message }, Outdated, Progress { exchange, progress }, Pong }
    AddressReach { Public, Private, Named }
    FsRequest {
        ReadFile { path }, ReadDir { path }, Stat { path, no_follow }, Exists { path }, Access { path, mode },
        RealPath { path }, Write { path, data, how, mode }, MakeDir { path, recursive, mode }, RemoveFile { path },
        RemoveDir { path }, Remove { path, recursive, force }, Rename { from, to }, Copy { from, to, exclusive },
    }
    FsReply { Bytes(bytes), Entries(entries), Stat(stat), Bool(flag), Done, Path(path), Written(bytes) }
    DatabaseRequest {
        Configure { database }, Query { database, sql, parameters }, Exec { database, sql, parameters },
        Close { database },
    }
    DatabaseReply { Done, Rows { columns, values }, Changed { rows, last_row_id } }
    SqlParameters { Positional(values), Named(values) }
    SqlValue { Null, Integer(number), Real(bits), Text(text), Blob(bytes) }
    FileKind { File, Directory, Symlink, Other }
    ToKeeper {
        Token { token }, Keep { session, inner_pid }, Forget { session }, KeepZygote { zygote, inner_pid }, List,
        Shutdown, Begin { token, grace_ms },
    }
    FromKeeper {
        Failed(failure), Ready { layers }, Peer { accepted }, Kept { session },
        Exited { inner_pid, role, wait_status, usage }, Records { records, last },
        Listener,
    }
    ExitedRole { Worker(session), Zygote(zygote), Unknown }
    ToZygote {
        Fork { order, as_zygote }, Library { name, id, global, source_bytes }, Evaluate, PreparePrograms,
        Module { path, source_bytes }, Compile,
    }
    FromZygote { Ready, ForkFailed { order, errno }, Loaded, LibraryFailed { name, message } }
    ToFilesAgent {
        Open { call, path, cross_mounts }, Read { call, worktree, path, links, cap }, Start { call, worktree, process },
        Kill { process }, Close { worktree }, Ping { call },
    }
    FilesProcess { Broker { write }, Command }
    FromFilesAgent {
        Ready, NotReady { message }, Opened { call, device, inode, handle }, Piece { call, bytes }, Read { call, target },
        Started { call }, Failed { call, errno }, Ended { process, wait_status }, Pong { call },
    }
    ReadTarget { File(bytes), Folder, Nothing, Irregular, TooLarge(size) }
    ToWorker {
        Start(start), Execute(execute), HostReply { call, reply }, Ack { seq }, Adopt { last_committed, nonce }, Shutdown,
        Durable(order), Fork { order },
    }
    FromWorker {
        Started { heap_bytes }, Events { execution, events }, HostCall { execution, call, request }, Done(done),
        Adopted { nonce, acknowledged, last_sent, running, finished }, Durable(message), Forked { order }, ForkFailed { order, errno },
    }
    ToDurable {
        Compile { source, file_name, typescript }, Load { code, limits }, Pages(pages), Restore,
        Start { args, env, seed, segment }, Continue { segment }, Answer { answer, segment },
        Answers { answers, segment }, HostResult { result, segment }, Inspect, Set { frame, name, value }, Response { result, segment },
    }
    FromDurable {
        Compiled { code, typescript }, NotCompiled(diagnostics), Restored, Refused { why }, Events(events), Items(items),
        Pages(pages), Checkpoint(stop), Call(call), View(view), NotSet, SmallCheckpoint { pages, stop },
    }
    TaskAnswer { Text(text), Json(json), Failed(message), Expired(message), Wrong(message) }
    ItemContent {
        Question { prompt, options }, Timer { duration_ms }, Event { name, timeout_ms, fallback }, Refused { why },
    }
    WaitKind { Question, Timer, Event }
    Cause { Started, Steps, Pause { prompt, options }, Wait, Effect(call), Edited, Ended(end), Request(request), Response }
    End { Ok { result }, Threw { message, stack, full_bytes }, Limit(limit), Interrupted, Corrupt(what) }
    DurableLimit { Heap, Stack, Steps, Cpu, Wall, Events, Output, Result }
    GivenAnswer { Typed(text), Json(json) }
    ArchiveKind { Program, Execution }
    ExportPlace { Versions(version), Tasks(checkpoint), Events(seq), Pages(page, checkpoint) }
    SourceFormat { Script, Module, CommonJs, Json, TypeScript, TypeScriptModule }
    Outcome { Ok, Exception { message }, SyntaxError { message }, Limit(kind), Interrupted, Exit { code } }
    HostRequest { LoadModule { candidates, import, package }, Fs(request), Database(request), Exec(request), Http(call), Ask { number, prompt, options }, Stdin { max_bytes, wait_ms } }
    HostReply { Module { path, source, format, package }, Fs(reply), Failed(error), Database(reply), Exec(reply), Http(reply), Answer(answer), Stdin(reply), Compiled { path, format, package } }
    StdinReply { Data(bytes), End, NotYet }
    LimitKind { Memory, Cpu, Wall, Output, Events, Pids }
    CloseReason {
        Exited, ExitedUnasked(code), KilledByOperator, Limit(kind), Seccomp(call), Signal(name),
        ProtocolViolation(what), KeeperLost, HostRestart, SpawnFailed(why), StartupFailed(what), Idle, Expired,
        OutOfMemory, MemoryShort, Replaced, Cancelled, Unknown, HungUp, InternalError(what),
    }
    EventPayload {
        InputEcho { text }, Console { level, text, more }, Value(value), Exception { message, stack, code, truncated, full_bytes },
        System { message, level, code }, Stdout { text }, Stderr { text }, Http(record), Task { task_id, prompt },
    }
    ExecutionState { Execution(execution), Run(run) }
    ImportedObject { Program(program), Run(run) }
    ClientFrame { Request { id, idempotency_key, cancel_on_disconnect, op }, Unfollow { id } }
    ServerFrame { Events { id, events }, Reply { id, result } }
}

/// Calls a macro with every message enum and top-level struct of the channels: the types that are sent by themselves.
#[macro_export]
macro_rules! for_each_message {
    ($then:ident) => {
        $then! {
            ToBroker, FromBroker, ToKeeper, FromKeeper, ToZygote, FromZygote, ToWorker, FromWorker,
            ToFilesAgent, FromFilesAgent, ToEgress, FromEgress,
            ClientHello, ServerHello, ClientFrame, ServerFrame
        }
    };
}
