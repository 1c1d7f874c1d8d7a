-- Schema version 3. Through which door somebody came.

ALTER TABLE audit_log ADD COLUMN door TEXT NOT NULL DEFAULT 'control';
