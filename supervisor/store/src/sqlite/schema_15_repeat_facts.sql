-- Schema version 15: what a repetition of an execution in another session needs (`RepeatFacts`), and what requests over the network
-- cost their owner. Never edited, as schema.sql.
--
-- 256: unknown, for executions of before.
ALTER TABLE executions ADD COLUMN facts INTEGER NOT NULL DEFAULT 256;

-- Lines of the audit log about requests over the network count for their owner: a script makes as many as it is allowed to.
CREATE TRIGGER owners_of_http_lines AFTER INSERT ON audit_log WHEN NEW.verb = 'http' BEGIN
    INSERT INTO owners VALUES (NEW.owner, 256 + octet_length(NEW.subject))
        ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER owners_of_deleted_http_lines AFTER DELETE ON audit_log WHEN OLD.verb = 'http' BEGIN
    UPDATE owners SET bytes = max(0, bytes - (256 + octet_length(OLD.subject))) WHERE owner = OLD.owner;
END;
INSERT INTO owners SELECT owner, sum(256 + octet_length(subject)) FROM audit_log WHERE verb = 'http' GROUP BY owner
    ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
