-- Schema version 11: checkpoints that are written in pieces, and the stored bytes of each owner. Never edited, as schema.sql.

-- Pages of an execution from this checkpoint number on belong to no checkpoint: the next one is being written in pieces, or was
-- refused, or the execution has ended. Readers look only at pages of checkpoints. At most one row for each execution.
CREATE TABLE staged (
    execution   BLOB    NOT NULL PRIMARY KEY REFERENCES executions (id),
    seq         INTEGER NOT NULL,
    bytes       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What the rows of an owner take, as the triggers below count it (bytes).
CREATE TABLE owners (
    owner       TEXT    NOT NULL PRIMARY KEY,
    bytes       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A row counts 1 KiB, a line of output an eighth of it, a page of a state 64 bytes besides its content. A damaged size of output
-- counts up to 2^40 bytes.
CREATE TRIGGER executions_inserted AFTER INSERT ON executions BEGIN
    INSERT INTO owners VALUES (NEW.owner, 1024 + 128 * min(NEW.events, 1000000000) + min(NEW.output_bytes, 1099511627776)
        + octet_length(NEW.args) + octet_length(NEW.env) + coalesce(octet_length(NEW.input), 0)
        + coalesce(octet_length(NEW.result), 0))
    ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER executions_updated AFTER UPDATE OF events, output_bytes, result ON executions BEGIN
    UPDATE owners SET bytes = max(0, bytes
        + 128 * (min(NEW.events, 1000000000) - min(OLD.events, 1000000000))
        + min(NEW.output_bytes, 1099511627776) - min(OLD.output_bytes, 1099511627776)
        + coalesce(octet_length(NEW.result), 0) - coalesce(octet_length(OLD.result), 0))
    WHERE owner = NEW.owner;
END;
CREATE TRIGGER executions_deleted AFTER DELETE ON executions BEGIN
    UPDATE owners SET bytes = max(0, bytes - 1024 - 128 * min(OLD.events, 1000000000)
        - min(OLD.output_bytes, 1099511627776) - octet_length(OLD.args) - octet_length(OLD.env)
        - coalesce(octet_length(OLD.input), 0) - coalesce(octet_length(OLD.result), 0))
    WHERE owner = OLD.owner;
END;

CREATE TRIGGER state_pages_inserted AFTER INSERT ON state_pages BEGIN
    UPDATE owners SET bytes = bytes + 64 + coalesce(length(NEW.bytes), 0)
    WHERE owner = (SELECT owner FROM executions WHERE id = NEW.execution);
END;
CREATE TRIGGER state_pages_deleted AFTER DELETE ON state_pages BEGIN
    UPDATE owners SET bytes = max(0, bytes - 64 - coalesce(length(OLD.bytes), 0))
    WHERE owner = (SELECT owner FROM executions WHERE id = OLD.execution);
END;

CREATE TRIGGER tasks_inserted AFTER INSERT ON tasks BEGIN
    UPDATE owners SET bytes = bytes + coalesce(octet_length(NEW.schema), 0) + coalesce(octet_length(NEW.answer), 0)
    WHERE owner = NEW.owner;
END;
CREATE TRIGGER tasks_updated AFTER UPDATE OF answer ON tasks BEGIN
    UPDATE owners SET bytes = max(0, bytes + coalesce(octet_length(NEW.answer), 0) - coalesce(octet_length(OLD.answer), 0))
    WHERE owner = NEW.owner;
END;
CREATE TRIGGER tasks_deleted AFTER DELETE ON tasks BEGIN
    UPDATE owners SET bytes = max(0, bytes - coalesce(octet_length(OLD.schema), 0) - coalesce(octet_length(OLD.answer), 0))
    WHERE owner = OLD.owner;
END;

CREATE TRIGGER program_versions_inserted AFTER INSERT ON program_versions BEGIN
    INSERT INTO owners
        SELECT owner, octet_length(NEW.source) + length(NEW.code) FROM programs WHERE id = NEW.program
    ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER program_versions_updated AFTER UPDATE OF source, code ON program_versions BEGIN
    UPDATE owners SET bytes = max(0, bytes + octet_length(NEW.source) + length(NEW.code)
        - octet_length(OLD.source) - length(OLD.code))
    WHERE owner = (SELECT owner FROM programs WHERE id = NEW.program);
END;
CREATE TRIGGER program_versions_deleted AFTER DELETE ON program_versions BEGIN
    UPDATE owners SET bytes = max(0, bytes - octet_length(OLD.source) - length(OLD.code))
    WHERE owner = (SELECT owner FROM programs WHERE id = OLD.program);
END;

INSERT INTO owners SELECT owner, CAST(total(bytes) AS INTEGER) FROM (
    SELECT owner, 1024 + 128 * min(events, 1000000000) + min(output_bytes, 1099511627776) + octet_length(args)
        + octet_length(env) + coalesce(octet_length(input), 0) + coalesce(octet_length(result), 0) AS bytes FROM executions
    UNION ALL
    SELECT owner, total(64 + coalesce(length(bytes), 0)) FROM state_pages
        CROSS JOIN executions ON id = execution GROUP BY execution
    UNION ALL
    SELECT owner, coalesce(octet_length(schema), 0) + coalesce(octet_length(answer), 0) FROM tasks
    UNION ALL
    SELECT owner, octet_length(source) + length(code) FROM program_versions CROSS JOIN programs ON id = program
) GROUP BY owner;
