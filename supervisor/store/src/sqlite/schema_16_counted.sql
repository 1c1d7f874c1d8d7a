-- Schema version 16: what else counts for its owner. Never edited, as schema.sql.
--
-- All lines of the audit log: some changes, such as suspending a session again and again, leave nothing else.
DROP TRIGGER owners_of_http_lines;
DROP TRIGGER owners_of_deleted_http_lines;
CREATE TRIGGER owners_of_lines AFTER INSERT ON audit_log BEGIN
    INSERT INTO owners VALUES (NEW.owner, 256 + octet_length(NEW.subject))
        ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER owners_of_deleted_lines AFTER DELETE ON audit_log BEGIN
    UPDATE owners SET bytes = max(0, bytes - (256 + octet_length(OLD.subject))) WHERE owner = OLD.owner;
END;
INSERT INTO owners SELECT owner, sum(256 + octet_length(subject)) FROM audit_log WHERE verb <> 'http' GROUP BY owner
    ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;

-- So do events of sessions that belong to no execution: some are made without end. As a constant, since the type of one may change.
-- They are deleted before their session, whose row has the owner.
DROP TRIGGER session_events_of_deleted_session;
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
INSERT INTO owners SELECT owner, 128 * count(*) FROM session_events AS event JOIN sessions ON sessions.id = event.session
    WHERE event.type NOT LIKE 'execution%' AND event.type NOT IN ('created', 'forked') GROUP BY owner
    ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;

-- So do the policies of sessions, for the owner of the first session that has one: settings of a session make a new one.
ALTER TABLE policies ADD COLUMN owner TEXT;
UPDATE policies SET owner = (SELECT owner FROM sessions WHERE policy = hash LIMIT 1);
CREATE TRIGGER owners_of_policies AFTER INSERT ON policies WHEN NEW.owner IS NOT NULL BEGIN
    INSERT INTO owners VALUES (NEW.owner, 64 + octet_length(NEW.snapshot))
        ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER owners_of_deleted_policies AFTER DELETE ON policies WHEN OLD.owner IS NOT NULL BEGIN
    UPDATE owners SET bytes = max(0, bytes - (64 + octet_length(OLD.snapshot))) WHERE owner = OLD.owner;
END;
INSERT INTO owners SELECT owner, sum(64 + octet_length(snapshot)) FROM policies WHERE owner IS NOT NULL GROUP BY owner
    ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
