-- Schema version 12: what the rows of an owner take is counted as they take it in the file, and for all kinds of
-- rows. Never edited.
--
-- In a table WITHOUT ROWID at most 1002 bytes of a row are in the tree, and what is larger has pages of its own
-- (fileformat2.html#cell_payload, 4096 bytes a page): a content of 1 KiB takes 4.6 KiB. Pages of the tree are two
-- thirds full.
-- Rows beside these (parts of a template's lists, the current executions of clients) are bounded for each owner.

DROP TRIGGER executions_inserted;
DROP TRIGGER executions_updated;
DROP TRIGGER executions_deleted;
DROP TRIGGER state_pages_inserted;
DROP TRIGGER state_pages_deleted;
DROP TRIGGER tasks_inserted;
DROP TRIGGER tasks_updated;
DROP TRIGGER tasks_deleted;
DROP TRIGGER program_versions_inserted;
DROP TRIGGER program_versions_updated;
DROP TRIGGER program_versions_deleted;

CREATE TRIGGER executions_inserted AFTER INSERT ON executions BEGIN
    INSERT INTO owners VALUES (NEW.owner, 1024 + 128 * min(NEW.events, 1000000000)
        + min(NEW.output_bytes, 1099511627776)
        + 4096 * min(min(NEW.events, 1000000000), min(NEW.output_bytes, 1099511627776) / 1500)
        + octet_length(NEW.args) + octet_length(NEW.env) + coalesce(octet_length(NEW.input), 0)
        + coalesce(octet_length(NEW.result), 0)
        + 4096 * min((octet_length(NEW.args) + octet_length(NEW.env) + coalesce(octet_length(NEW.input), 0)
        + coalesce(octet_length(NEW.result), 0)) / 700, 1))
    ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER executions_updated AFTER UPDATE OF events, output_bytes, result ON executions BEGIN
    UPDATE owners SET bytes = max(0, bytes + (1024 + 128 * min(NEW.events, 1000000000)
        + min(NEW.output_bytes, 1099511627776)
        + 4096 * min(min(NEW.events, 1000000000), min(NEW.output_bytes, 1099511627776) / 1500)
        + octet_length(NEW.args) + octet_length(NEW.env) + coalesce(octet_length(NEW.input), 0)
        + coalesce(octet_length(NEW.result), 0)
        + 4096 * min((octet_length(NEW.args) + octet_length(NEW.env) + coalesce(octet_length(NEW.input), 0)
        + coalesce(octet_length(NEW.result), 0)) / 700, 1))
        - (1024 + 128 * min(OLD.events, 1000000000) + min(OLD.output_bytes, 1099511627776)
        + 4096 * min(min(OLD.events, 1000000000), min(OLD.output_bytes, 1099511627776) / 1500)
        + octet_length(OLD.args) + octet_length(OLD.env) + coalesce(octet_length(OLD.input), 0)
        + coalesce(octet_length(OLD.result), 0)
        + 4096 * min((octet_length(OLD.args) + octet_length(OLD.env) + coalesce(octet_length(OLD.input), 0)
        + coalesce(octet_length(OLD.result), 0)) / 700, 1)))
    WHERE owner = NEW.owner;
END;
CREATE TRIGGER executions_deleted AFTER DELETE ON executions BEGIN
    UPDATE owners SET bytes = max(0, bytes - (1024 + 128 * min(OLD.events, 1000000000)
        + min(OLD.output_bytes, 1099511627776)
        + 4096 * min(min(OLD.events, 1000000000), min(OLD.output_bytes, 1099511627776) / 1500)
        + octet_length(OLD.args) + octet_length(OLD.env) + coalesce(octet_length(OLD.input), 0)
        + coalesce(octet_length(OLD.result), 0)
        + 4096 * min((octet_length(OLD.args) + octet_length(OLD.env) + coalesce(octet_length(OLD.input), 0)
        + coalesce(octet_length(OLD.result), 0)) / 700, 1)))
    WHERE owner = OLD.owner;
END;

CREATE TRIGGER sessions_inserted AFTER INSERT ON sessions BEGIN
    INSERT INTO owners VALUES (NEW.owner, 1024 + octet_length(NEW.workspace_id) + octet_length(NEW.base_commit_oid)
        + octet_length(NEW.worktree_path) + octet_length(NEW.runtime_meta) + coalesce(octet_length(NEW.last_error), 0)
        + 4096 * min((octet_length(NEW.workspace_id) + octet_length(NEW.base_commit_oid)
        + octet_length(NEW.worktree_path) + octet_length(NEW.runtime_meta)
        + coalesce(octet_length(NEW.last_error), 0)) / 700, 1))
    ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER sessions_updated AFTER UPDATE OF last_error, runtime_meta ON sessions BEGIN
    UPDATE owners SET bytes = max(0, bytes + (1024 + octet_length(NEW.workspace_id)
        + octet_length(NEW.base_commit_oid) + octet_length(NEW.worktree_path) + octet_length(NEW.runtime_meta)
        + coalesce(octet_length(NEW.last_error), 0)
        + 4096 * min((octet_length(NEW.workspace_id) + octet_length(NEW.base_commit_oid)
        + octet_length(NEW.worktree_path) + octet_length(NEW.runtime_meta)
        + coalesce(octet_length(NEW.last_error), 0)) / 700, 1))
        - (1024 + octet_length(OLD.workspace_id) + octet_length(OLD.base_commit_oid)
        + octet_length(OLD.worktree_path) + octet_length(OLD.runtime_meta) + coalesce(octet_length(OLD.last_error), 0)
        + 4096 * min((octet_length(OLD.workspace_id) + octet_length(OLD.base_commit_oid)
        + octet_length(OLD.worktree_path) + octet_length(OLD.runtime_meta)
        + coalesce(octet_length(OLD.last_error), 0)) / 700, 1)))
    WHERE owner = NEW.owner;
END;
CREATE TRIGGER sessions_deleted AFTER DELETE ON sessions BEGIN
    UPDATE owners SET bytes = max(0, bytes - (1024 + octet_length(OLD.workspace_id)
        + octet_length(OLD.base_commit_oid) + octet_length(OLD.worktree_path) + octet_length(OLD.runtime_meta)
        + coalesce(octet_length(OLD.last_error), 0)
        + 4096 * min((octet_length(OLD.workspace_id) + octet_length(OLD.base_commit_oid)
        + octet_length(OLD.worktree_path) + octet_length(OLD.runtime_meta)
        + coalesce(octet_length(OLD.last_error), 0)) / 700, 1)))
    WHERE owner = OLD.owner;
END;

CREATE TRIGGER tasks_inserted AFTER INSERT ON tasks BEGIN
    UPDATE owners SET bytes = bytes + 512 + octet_length(NEW.prompt) + coalesce(octet_length(NEW.schema), 0)
        + coalesce(octet_length(NEW.fallback), 0) + coalesce(octet_length(NEW.answer), 0)
    WHERE owner = NEW.owner;
END;
CREATE TRIGGER tasks_updated AFTER UPDATE OF answer ON tasks BEGIN
    UPDATE owners SET bytes = max(0, bytes + (512 + octet_length(NEW.prompt)
        + coalesce(octet_length(NEW.schema), 0) + coalesce(octet_length(NEW.fallback), 0)
        + coalesce(octet_length(NEW.answer), 0))
        - (512 + octet_length(OLD.prompt) + coalesce(octet_length(OLD.schema), 0)
        + coalesce(octet_length(OLD.fallback), 0) + coalesce(octet_length(OLD.answer), 0)))
    WHERE owner = NEW.owner;
END;
CREATE TRIGGER tasks_deleted AFTER DELETE ON tasks BEGIN
    UPDATE owners SET bytes = max(0, bytes - (512 + octet_length(OLD.prompt)
        + coalesce(octet_length(OLD.schema), 0) + coalesce(octet_length(OLD.fallback), 0)
        + coalesce(octet_length(OLD.answer), 0)))
    WHERE owner = OLD.owner;
END;

CREATE TRIGGER idempotency_keys_inserted AFTER INSERT ON idempotency_keys BEGIN
    INSERT INTO owners VALUES (NEW.owner, 256 + octet_length(NEW.key)
        + CASE WHEN coalesce(length(NEW.reply), 0) <= 962 THEN 60 + coalesce(length(NEW.reply), 0) * 3 / 2
        ELSE 1024 + (coalesce(length(NEW.reply), 0) + 3129) / 4092 * 4096 END)
    ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER idempotency_keys_updated AFTER UPDATE OF reply ON idempotency_keys BEGIN
    UPDATE owners SET bytes = max(0, bytes + (256 + octet_length(NEW.key)
        + CASE WHEN coalesce(length(NEW.reply), 0) <= 962 THEN 60 + coalesce(length(NEW.reply), 0) * 3 / 2
        ELSE 1024 + (coalesce(length(NEW.reply), 0) + 3129) / 4092 * 4096 END)
        - (256 + octet_length(OLD.key) + CASE WHEN coalesce(length(OLD.reply), 0) <= 962 THEN 60
        + coalesce(length(OLD.reply), 0) * 3 / 2 ELSE 1024 + (coalesce(length(OLD.reply), 0)
        + 3129) / 4092 * 4096 END))
    WHERE owner = NEW.owner;
END;
CREATE TRIGGER idempotency_keys_deleted AFTER DELETE ON idempotency_keys BEGIN
    UPDATE owners SET bytes = max(0, bytes - (256 + octet_length(OLD.key)
        + CASE WHEN coalesce(length(OLD.reply), 0) <= 962 THEN 60 + coalesce(length(OLD.reply), 0) * 3 / 2
        ELSE 1024 + (coalesce(length(OLD.reply), 0) + 3129) / 4092 * 4096 END))
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

CREATE TRIGGER state_pages_inserted AFTER INSERT ON state_pages BEGIN
    UPDATE owners SET bytes = bytes + CASE WHEN coalesce(length(NEW.bytes), 0) <= 962 THEN 60
        + coalesce(length(NEW.bytes), 0) * 3 / 2 ELSE 1024 + (coalesce(length(NEW.bytes), 0) + 3129) / 4092 * 4096 END
    WHERE owner = (SELECT owner FROM executions WHERE id = NEW.execution);
END;
CREATE TRIGGER state_pages_deleted AFTER DELETE ON state_pages BEGIN
    UPDATE owners SET bytes = max(0, bytes - (CASE WHEN coalesce(length(OLD.bytes), 0) <= 962 THEN 60
        + coalesce(length(OLD.bytes), 0) * 3 / 2 ELSE 1024 + (coalesce(length(OLD.bytes), 0)
        + 3129) / 4092 * 4096 END))
    WHERE owner = (SELECT owner FROM executions WHERE id = OLD.execution);
END;

CREATE TRIGGER checkpoints_inserted AFTER INSERT ON checkpoints BEGIN
    UPDATE owners SET bytes = bytes + 256 + coalesce(length(NEW.pages), 0)
    WHERE owner = (SELECT owner FROM executions WHERE id = NEW.execution);
END;
CREATE TRIGGER checkpoints_deleted AFTER DELETE ON checkpoints BEGIN
    UPDATE owners SET bytes = max(0, bytes - (256 + coalesce(length(OLD.pages), 0)))
    WHERE owner = (SELECT owner FROM executions WHERE id = OLD.execution);
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

DELETE FROM owners;
INSERT INTO owners SELECT owner, CAST(total(bytes) AS INTEGER) FROM (
    SELECT owner, 1024 + 128 * min(events, 1000000000) + min(output_bytes, 1099511627776)
        + 4096 * min(min(events, 1000000000), min(output_bytes, 1099511627776) / 1500)
        + octet_length(args) + octet_length(env) + coalesce(octet_length(input), 0)
        + coalesce(octet_length(result), 0)
        + 4096 * min((octet_length(args) + octet_length(env) + coalesce(octet_length(input), 0)
        + coalesce(octet_length(result), 0)) / 700, 1) AS bytes FROM executions
    UNION ALL
    SELECT owner, 1024 + octet_length(workspace_id) + octet_length(base_commit_oid) + octet_length(worktree_path)
        + octet_length(runtime_meta) + coalesce(octet_length(last_error), 0)
        + 4096 * min((octet_length(workspace_id) + octet_length(base_commit_oid) + octet_length(worktree_path)
        + octet_length(runtime_meta) + coalesce(octet_length(last_error), 0)) / 700, 1) AS bytes FROM sessions
    UNION ALL
    SELECT owner, 512 + octet_length(prompt) + coalesce(octet_length(schema), 0)
        + coalesce(octet_length(fallback), 0) + coalesce(octet_length(answer), 0) AS bytes FROM tasks
    UNION ALL
    SELECT owner, 256 + octet_length(key) + CASE WHEN coalesce(length(reply), 0) <= 962 THEN 60
        + coalesce(length(reply), 0) * 3 / 2 ELSE 1024 + (coalesce(length(reply), 0)
        + 3129) / 4092 * 4096 END AS bytes FROM idempotency_keys
    UNION ALL
    SELECT owner, 512 + octet_length(name) + octet_length(settings) AS bytes FROM templates
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
) GROUP BY owner;
