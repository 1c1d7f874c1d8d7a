-- Schema version 7. The audit log is forgotten in the order of its lines, which is the order of their times unless the
-- calendar was set: an index of its own for that was one more page in every commit with a line.

DROP INDEX audit_log_by_time;
