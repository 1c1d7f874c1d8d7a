-- Schema version 13: whose rights use the worktree of a session, and where it is (`RecordedWorktree`). Never edited.
--
-- All are NULL for a program without files, and for sessions that were created before.
ALTER TABLE sessions ADD COLUMN files_uid INTEGER;
ALTER TABLE sessions ADD COLUMN files_user TEXT;
ALTER TABLE sessions ADD COLUMN files_root TEXT;
ALTER TABLE sessions ADD COLUMN files_beneath TEXT;
ALTER TABLE sessions ADD COLUMN files_handle BLOB;

-- The paths count for their owner; the rest is in the 1 KiB of each row.
DROP TRIGGER sessions_inserted;
DROP TRIGGER sessions_updated;
DROP TRIGGER sessions_deleted;

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
