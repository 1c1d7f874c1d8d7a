-- The bytes that each owner stores, counted anew: the same sums as the triggers of schema.sql and write/usage.rs keep.
SELECT owner, CAST(total(bytes) AS INTEGER) FROM (
    SELECT owner, 1024 + 128 * min(events, 1000000000) + min(output_bytes, 1099511627776)
        + 4096 * min(min(events, 1000000000), min(output_bytes, 1099511627776) / 1500)
        + octet_length(args) + octet_length(env) + coalesce(octet_length(input), 0)
        + coalesce(octet_length(result), 0)
        + 4096 * min((octet_length(args) + octet_length(env) + coalesce(octet_length(input), 0)
        + coalesce(octet_length(result), 0)) / 700, 1) AS bytes FROM executions
    UNION ALL
    SELECT owner, 1024 + octet_length(workspace_id) + octet_length(base_commit_oid) + octet_length(worktree_path)
        + octet_length(runtime_meta) + coalesce(octet_length(files_root), 0)
        + coalesce(octet_length(files_beneath), 0) + coalesce(octet_length(last_error), 0)
        + 4096 * min((octet_length(workspace_id) + octet_length(base_commit_oid) + octet_length(worktree_path)
        + octet_length(runtime_meta) + coalesce(octet_length(files_root), 0)
        + coalesce(octet_length(files_beneath), 0) + coalesce(octet_length(last_error), 0)) / 700, 1) AS bytes FROM sessions
    UNION ALL
    SELECT owner, 512 + octet_length(prompt) + coalesce(octet_length(schema), 0)
        + coalesce(octet_length(fallback), 0) + coalesce(octet_length(answer), 0) AS bytes FROM items
    UNION ALL
    SELECT executions.owner, total(128 + octet_length(mailbox.name) + octet_length(event)) AS bytes FROM mailbox
        CROSS JOIN executions ON executions.id = mailbox.execution GROUP BY executions.id
    UNION ALL
    SELECT owner, 256 + octet_length(key) + CASE WHEN coalesce(length(reply), 0) <= 962 THEN 60
        + coalesce(length(reply), 0) * 3 / 2 ELSE 1024 + (coalesce(length(reply), 0)
        + 3129) / 4092 * 4096 END AS bytes FROM idempotency_keys
    UNION ALL
    SELECT owner, 512 + octet_length(name) + octet_length(settings) AS bytes FROM templates
    UNION ALL
    SELECT owner, 2048 + octet_length(name) + octet_length(spec) AS bytes FROM schedules
    UNION ALL
    SELECT executions.owner, total(CASE WHEN coalesce(length(state_pages.bytes), 0) <= 962 THEN 60
        + coalesce(length(state_pages.bytes), 0) * 3 / 2 ELSE 1024 + (coalesce(length(state_pages.bytes), 0)
        + 3129) / 4092 * 4096 END) AS bytes FROM state_pages
        CROSS JOIN executions ON executions.id = state_pages.execution GROUP BY executions.id
    UNION ALL
    SELECT executions.owner, total(256 + coalesce(length(checkpoints.pages), 0)) AS bytes FROM checkpoints
        CROSS JOIN executions ON executions.id = checkpoints.execution GROUP BY executions.id
    UNION ALL
    SELECT programs.owner, total(256 + octet_length(program_versions.source)
        + length(program_versions.code)) AS bytes FROM program_versions
        CROSS JOIN programs ON programs.id = program_versions.program GROUP BY programs.id
    UNION ALL
    SELECT templates.owner, total(256 + octet_length(capabilities.name)
        + octet_length(capabilities.config)) AS bytes FROM capabilities
        CROSS JOIN templates ON templates.id = capabilities.template GROUP BY templates.id
    UNION ALL
    SELECT templates.owner, total(256 + octet_length(startup_files.path)) AS bytes FROM startup_files
        CROSS JOIN templates ON templates.id = startup_files.template GROUP BY templates.id
    UNION ALL
    SELECT owner, 256 + octet_length(subject) FROM audit_log
    UNION ALL
    SELECT owner, 64 + octet_length(snapshot) FROM policies
    UNION ALL
    SELECT sessions.owner, 128 FROM session_events AS event JOIN sessions ON sessions.id = event.session
        WHERE event.type NOT LIKE 'execution%' AND event.type NOT IN ('created', 'forked')
) GROUP BY owner
