-- Schema version 18: a count of commits (`commit_count.rs`), as a row of a table that nearly every commit writes. Never edited, as
-- schema.sql.
INSERT INTO owners VALUES ('(commits)', 0);
